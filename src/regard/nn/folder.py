"""Read and write the folder of a `regard.Transformer`, or of a training run with its checkpoints.

A model's folder has config.json (with `"regard": "transformer"`) and model.safetensors. With a tokenizer, it also has
tokenizer.json and tokenizer_config.json (special tokens).

In a training run's folder RUN, each checkpoint is a model folder, RUN/checkpoints/step-000100/, with additional files
for training. RUN/latest.json, {"checkpoint": "step-000100"}, names the newest complete checkpoint. It is written after
all files of the checkpoint, so an incomplete checkpoint is never read.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.files import check_regular, read_json, whole
from regard.memory import require_memory
from regard.model_files.limits import read_sizes
from regard.model_files.size_limit import Budget, nbytes
from regard.nn.config import FORMAT, TransformerConfig
from regard.nn.transformer import Transformer
from regard.text.tokenizers import read_tokenizer, tokenizer_files

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

POINTER, CHECKPOINTS = "latest.json", "checkpoints"
CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"


def save_model(folder: Path | str, model: Transformer, tokenizer: Any = None) -> None:
    """Write a model's folder, each file atomically and the config last."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegardError(f"cannot make the folder {str(folder)!r}: {error.strerror or error}") from error
    with whole(folder / WEIGHTS) as file:
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.named_parameters()}
        try:
            safetensors.torch.save_file(tensors, file)
        except safetensors.SafetensorError as error:
            raise RegardError(f"cannot write {str(folder / WEIGHTS)!r}: {error}") from error
    write_tokenizer(folder, tokenizer)
    _write_transformer_file(folder / CONFIG, json.dumps(model.config.as_json(), indent=2) + "\n")


def write_tokenizer(folder: Path, tokenizer: Any) -> None:
    """Write the files of a tokenizer to a model's folder, each atomically. Does nothing for None."""
    for name, text in tokenizer_files(tokenizer).items() if tokenizer is not None else ():
        _write_transformer_file(folder / name, text)


def read_model(folder: Path | str) -> "tuple[Transformer, PreTrainedTokenizerFast | None]":
    """Read a model, on the CPU in evaluation mode, and its tokenizer, or None if the folder has no tokenizer.

    folder: of a model or of a training run. For a training run, the newest complete checkpoint is read.
    """
    folder = newest_transformer_folder(folder)
    if not (folder / CONFIG).exists():
        raise RegardError(f"{str(folder)!r} is not the folder of a regard.Transformer: it has no {CONFIG}")
    config = TransformerConfig.from_json(read_json(folder / CONFIG), repr(str(folder / CONFIG)))
    sizes = read_sizes([folder / WEIGHTS])
    require_memory(nbytes(sizes), torch.device("cpu"), f"the model {str(folder)!r}", "take a smaller model")
    with Budget(sizes, str(folder)), torch.device("meta"):  # raises if the config needs more memory than the weights
        Transformer(config)
    with torch.random.fork_rng(devices=[]):  # these weights are overwritten, so keep the random state
        model = Transformer(config)
    fill_module_weights(model, read_tensors(folder / WEIGHTS), repr(str(folder / WEIGHTS)))
    tokenizer = read_tokenizer(folder) if (folder / TOKENIZER).exists() else None
    if tokenizer is not None and len(tokenizer) > config.vocabulary:
        raise RegardError(
            f"{str(folder)!r}: its tokenizer has {len(tokenizer)} tokens, the model {config.vocabulary}: they do not "
            "belong together"
        )
    return model.eval(), tokenizer


def is_transformer_folder(folder: Path) -> bool:
    """Return whether a folder has a `regard.Transformer` or a training run of one."""
    if (folder / POINTER).is_file():
        return True
    try:
        return read_json(folder / CONFIG).get("regard") == FORMAT
    except RegardError:
        return False


def newest_transformer_folder(folder: Path | str) -> Path:
    """Return a model's folder itself, or the newest complete checkpoint of a training run."""
    folder = Path(folder)
    pointer = folder / POINTER
    if not pointer.is_file():
        if (folder / CHECKPOINTS).is_dir():
            raise RegardError(f"{str(folder)!r} is a training run without a whole checkpoint: it has no {POINTER}")
        return folder
    name = str(read_json(pointer).get("checkpoint"))
    newest = folder / CHECKPOINTS / name
    if name in ("", "..") or Path(name).name != name or not newest.is_dir():
        raise RegardError(f"{str(pointer)!r} names {name!r}, but {CHECKPOINTS}/ has no folder of this name")
    return newest


@torch.no_grad()
def fill_module_weights(model: nn.Module, tensors: dict[str, Tensor], name: str) -> None:
    """Copy tensors into a model's weights, converted to their dtype."""
    targets = dict(model.named_parameters())
    missing, unknown = sorted(set(targets) - set(tensors)), sorted(set(tensors) - set(targets))
    if missing:
        raise RegardError(f"{name} is incomplete: {len(missing)} tensors are missing, the first {missing[0]!r}")
    if unknown:
        raise RegardError(f"{name}: tensor {unknown[0]!r} belongs to no part of a model with this config")
    for key, tensor in tensors.items():
        if tensor.shape != targets[key].shape:
            shape, needed = tuple(tensor.shape), tuple(targets[key].shape)
            raise RegardError(f"{name}: tensor {key!r} has shape {shape}, its config needs {needed}")
    for key, tensor in tensors.items():
        targets[key].copy_(tensor)


def read_tensors(file: Path, suspect: str = "truncated") -> dict[str, Tensor]:
    """Read the tensors of a safetensors file onto the CPU. suspect: the likely fault, for the error message."""
    check_regular(file)
    try:
        return safetensors.torch.load_file(file)
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RegardError(f"{str(file)!r} is {suspect} or not a safetensors file ({reason})") from error


def _write_transformer_file(file: Path, text: str) -> None:
    with whole(file) as temporary:
        temporary.write_text(text, encoding="utf-8")
