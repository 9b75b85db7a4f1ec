"""Read and write the folder of a training run: run.json, checkpoints and the lock.

RUN/run.json        settings, the model's config, and sizes and SHA-256 of the texts
RUN/log.jsonl       one line per update: step, loss, validation, rate, tokens, seconds
RUN/loss.png        the loss curve
RUN/samples.txt     samples that the model generates during training
RUN/checkpoints/, latest.json    see nn/folder.py
RUN/watch/          traces of the watched sentence, one file per step
RUN/.lock           locked while a process trains into the folder

A checkpoint is written to a temporary folder, synced to disk and renamed. Then latest.json is updated. A run that is
killed at any time therefore keeps a pointer to a complete checkpoint. In addition to the model's files, a checkpoint
has training.safetensors (optimizer moments, random number states) and training.json (step, data position, best loss).
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from filelock import FileLock
from torch import Tensor

from regard import files
from regard.errors import RegardError
from regard.files import read_json, remove_leftovers, whole
from regard.memory import format_bytes, require_memory
from regard.nn.config import TransformerConfig
from regard.nn.folder import (
    CHECKPOINTS,
    POINTER,
    WEIGHTS,
    fill_module_weights,
    newest_transformer_folder,
    read_tensors,
    save_model,
)
from regard.nn.transformer import Transformer
from regard.train.run_files import RUN_JSON, WATCH, check_place_for_run
from regard.train.settings import Settings

STATE, NOTES = "training.safetensors", "training.json"


@dataclass(frozen=True)
class TrainingState:
    """The state of a run. step: updates done. place: data position of the next batch. best: lowest validation loss."""

    step: int = 0
    place: tuple[int, int] = (0, 0)
    best: float | None = None


def save_checkpoint(
    run: Path, model: Transformer, tokenizer: Any, optimiser: torch.optim.Optimizer, state: TrainingState, *, keep: int
) -> Path:
    """Write a checkpoint and point the run to it, then remove all but the `keep` newest checkpoints."""
    name = f"step-{state.step:06d}"
    checkpoints = run / CHECKPOINTS
    staged, final = checkpoints / f".{name}.part", checkpoints / name
    if (run / POINTER).is_file() and final.is_dir() and newest_transformer_folder(run) == final:
        return final  # already saved, with identical bits
    try:
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        save_model(staged, model, tokenizer)
        with whole(staged / STATE) as file:
            safetensors.torch.save_file(_optimizer_tensors(model, optimiser), file)
        with whole(staged / NOTES) as file:
            notes = {"step": state.step, "place": list(state.place), "best": state.best}
            notes["threads"] = torch.get_num_threads()
            file.write_text(json.dumps(notes) + "\n", encoding="utf-8")
        _sync_folder(staged)
        if final.exists():  # a run was killed before it updated the pointer
            shutil.rmtree(final)
        staged.rename(final)
        _sync_folder(checkpoints)
        with whole(run / POINTER) as file:
            file.write_text(json.dumps({"checkpoint": name}) + "\n", encoding="utf-8")
        _sync_folder(run)
    except (OSError, safetensors.SafetensorError) as error:
        shutil.rmtree(staged, ignore_errors=True)
        reason = getattr(error, "strerror", None) or error
        raise RegardError(f"checkpoint of step {state.step} cannot be written to {str(run)!r}: {reason}") from error
    except RegardError:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    for _, old in run_files_by_step(checkpoints)[:-keep]:
        if old.name != name:
            shutil.rmtree(old, ignore_errors=True)
    return final


def run_files_by_step(folder: Path, ending: str = "") -> list[tuple[int, Path]]:
    """Return (N, path) of a folder's entries with names step-N, sorted numerically."""
    pattern = re.compile(rf"step-([0-9]{{6,}}){re.escape(ending)}")
    matches = [(pattern.fullmatch(path.name), path) for path in folder.glob("step-*")]
    return sorted((int(match[1]), path) for match, path in matches if match is not None)


def load_checkpoint(
    run: Path, model: Transformer, optimiser: torch.optim.Optimizer
) -> tuple[TrainingState, tuple[str, ...]]:
    """Restore model, optimizer and random states from a run's newest checkpoint. Returns the run's state and notes.

    A note reports a different number of threads, because then the weights won't be bit-identical to those of an
    uninterrupted run.
    """
    folder = newest_transformer_folder(run)
    weights, tensors = (read_tensors(folder / name, "missing, truncated") for name in (WEIGHTS, STATE))
    notes_content = read_json(folder / NOTES)
    try:
        step, (epoch, number), best = (notes_content[name] for name in ("step", "place", "best"))
    except (KeyError, TypeError, ValueError) as error:
        raise RegardError(f"{str(folder / NOTES)!r} is damaged: a run writes something else") from error
    state = TrainingState(step, (epoch, number), best)
    parameters: dict[str, Tensor] = dict(model.named_parameters())
    expected = {f"{kind}.{name}": tensor for name, tensor in parameters.items() for kind in ("mean", "square")}
    expected |= {"count": torch.tensor(0.0), "random": torch.get_rng_state()}
    for name, tensor in expected.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            raise RegardError(f"{str(folder / STATE)!r} is incomplete: tensor {name!r} is missing or does not fit")
    fill_module_weights(model, weights, repr(str(folder / WEIGHTS)))
    for name, parameter in parameters.items():
        optimiser.state[parameter] = {
            "step": tensors["count"].clone(),
            "exp_avg": tensors[f"mean.{name}"].to(parameter.device),
            "exp_avg_sq": tensors[f"square.{name}"].to(parameter.device),
        }
    torch.set_rng_state(tensors["random"].cpu())
    for n in range(torch.cuda.device_count()):
        if f"random.cuda.{n}" in tensors:
            torch.cuda.set_rng_state(tensors[f"random.cuda.{n}"].cpu(), n)
    threads, current = notes_content.get("threads"), torch.get_num_threads()
    notes = (
        ()
        if threads == current
        else (f"The run used {threads} threads before and uses {current} now, so results may differ in the last bits.",)
    )
    return state, notes


def remove_run_leftovers(run: Path) -> None:
    """Remove the unfinished files and checkpoints of a killed run."""
    for folder in (run / CHECKPOINTS).glob(".step-*.part"):
        shutil.rmtree(folder, ignore_errors=True)
    for path in (run, run / WATCH):
        remove_leftovers(path)


def size_of_checkpoint(model: Transformer) -> int:
    """Estimate a checkpoint's size on disk in bytes: the weights, and twice as much for the optimizer."""
    return 12 * sum(parameter.numel() for parameter in model.parameters()) + (1 << 20)


def _optimizer_tensors(model: Transformer, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimizer's moments and the random number states, as named CPU tensors."""
    tensors = {"random": torch.get_rng_state()}  # for dropout, per device
    if torch.cuda.is_available():
        tensors |= {f"random.cuda.{n}": state for n, state in enumerate(torch.cuda.get_rng_state_all())}
    for name, parameter in model.named_parameters():
        moments = optimiser.state[parameter]
        tensors[f"mean.{name}"] = moments["exp_avg"].detach().cpu().contiguous()
        tensors[f"square.{name}"] = moments["exp_avg_sq"].detach().cpu().contiguous()
        tensors["count"] = torch.as_tensor(moments["step"]).detach().cpu().clone()
    return tensors


def _sync_folder(folder: Path) -> None:
    """Sync a folder's entries to disk, so that they survive a power failure (POSIX only)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


FORMAT, VERSION = "training run", 1


@dataclass(frozen=True)
class SourceFile:
    """A training file, identified by its size and SHA-256."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class RunInfo:
    """The description of a run in run.json, written at its start and checked when it resumes."""

    kind: str
    settings: Settings
    config: TransformerConfig
    sources: tuple[SourceFile, ...]
    watch: str | None = None
    prompt: str | None = None


def describe_source(name: str, content: bytes) -> SourceFile:
    """Describe the content of a training file by its size and SHA-256."""
    return SourceFile(name, len(content), hashlib.sha256(content).hexdigest())


def source_files(files: Sequence[Path]) -> tuple[SourceFile, ...]:
    """Describe training files by their sizes and SHA-256."""
    return tuple(describe_source(file.name, file.read_bytes()) for file in files)


def check_run_folder(run: Path, info: RunInfo, *, resume: bool) -> None:
    """Check that a run can start in a folder, or resume there with the same settings and texts. Writes nothing."""
    if not check_place_for_run(run, resume=resume):
        return
    existing = read_run_info(run)
    if existing.kind != info.kind:
        raise RegardError(f"--resume {str(run)!r}: it is a run of kind {existing.kind!r}, not {info.kind!r}")
    for name in existing.settings.differences(info.settings):
        old, new = getattr(existing.settings, name), getattr(info.settings, name)
        raise RegardError(f"--resume {str(run)!r}: its {name} is {old!r}, not {new!r}: name another folder")
    if [source.sha256 for source in existing.sources] != [source.sha256 for source in info.sources]:
        raise RegardError(f"--resume {str(run)!r}: it was trained on other texts: name another folder")
    if existing.config != info.config:
        raise RegardError(f"--resume {str(run)!r}: its model has another config: name another folder")


def lock_folder(run: Path, info: RunInfo, *, resume: bool) -> FileLock:
    """Create a run's folder if needed, lock it for this process and return the lock."""
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegardError(f"--out {str(run)!r} cannot be made: {error.strerror or error}") from error
    option = f"--out {str(run)!r}"
    message = f"{option}: another regard train is writing to it: wait for it to end, stop it, or name another folder"
    lock = files.lock_folder(run, message, f"{option} cannot be written to")
    try:
        check_run_folder(run, info, resume=resume)
    except RegardError:
        lock.release()
        raise
    return lock


def write_run_info(run: Path, info: RunInfo) -> None:
    """Write the description of a run to run.json."""
    record = {
        "regard": FORMAT, "version": VERSION, "kind": info.kind, "settings": info.settings.as_json(),
        "model": info.config.as_json(), "sources": [vars(source) for source in info.sources], "watch": info.watch,
        "prompt": info.prompt,
    }  # fmt: skip
    with whole(run / RUN_JSON) as file:
        file.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_run_info(run: Path) -> RunInfo:
    """Read the description of a run from run.json. Raises RegardError if it is damaged."""
    file = run / RUN_JSON
    if not file.exists():
        raise RegardError(f"{str(run)!r} isn't a training run: it has no {RUN_JSON}")
    record = read_json(file)
    try:
        if record["regard"] != FORMAT or record["version"] > VERSION:
            raise RegardError(f"{str(file)!r} has another format or a newer version: update regard")
        sources = tuple(SourceFile(**source) for source in record["sources"])
        config = TransformerConfig.from_json(record["model"], repr(str(file)))
        return RunInfo(
            record["kind"], Settings(**record["settings"]), config, sources, record["watch"], record.get("prompt")
        )
    except RegardError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RegardError(f"{str(file)!r} is damaged: a run writes something else") from error


def check_space(run: Path, config: TransformerConfig, settings: Settings) -> None:
    """Raise RegardError if disk space or memory isn't sufficient for a run, before its model is created."""
    device, helps = training_device(), "a smaller batch, block or model"
    purpose = f"training {_tokens_per_batch(config, settings):,} tokens at a time"
    require_memory(training_memory(config, settings), device, purpose, helps)
    with torch.device("meta"):
        model = Transformer(config)
    if device.type != "cpu":  # the model and every checkpoint also need memory on the CPU
        require_memory(size_of_checkpoint(model), torch.device("cpu"), "a checkpoint that is written", helps)
    need = (settings.keep + 1) * size_of_checkpoint(model)
    existing_folder = next(folder for folder in (run, *run.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(existing_folder).free
    if need > free:
        sizes = f"need {format_bytes(need)}, the disk has {format_bytes(free)}"
        raise RegardError(f"--out {str(run)!r}: {settings.keep + 1} checkpoints {sizes}")


def training_device() -> torch.device:
    """Return the device for training: CUDA if available, otherwise the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def training_memory(config: TransformerConfig, settings: Settings) -> int:
    """Estimate the device memory for training in bytes: weights, gradients, optimizer and activations."""
    stacks = 2 if config.kind == "encoder-decoder" else 1
    width, hidden = config.d_model, config.hidden_width
    layer = 4 * width * width + (3 if config.gated else 2) * width * hidden
    weights = 16 * (config.vocabulary * width + stacks * config.layers * layer)
    per_token = stacks * config.layers * (10 * width + 2 * hidden) + 3 * config.vocabulary
    return weights + 4 * _tokens_per_batch(config, settings) * per_token


def _tokens_per_batch(config: TransformerConfig, settings: Settings) -> int:
    """Return the number of tokens in a batch. For pairs, `settings.batch` is already in tokens."""
    return settings.batch * (1 if config.kind == "encoder-decoder" else settings.block)
