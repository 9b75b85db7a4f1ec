"""Build a model from a checkpoint's config, and load its weights as stored, dequantized, or spread over devices.

`merge_adapter` adds a LoRA adapter of PEFT (Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models").
"""

import copy
import importlib.util
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from regard.capture.inputs import class_names
from regard.errors import RegardError
from regard.files import read_json
from regard.lazy import import_part
from regard.model_files.folder import ADAPTER
from regard.model_files.limits import MXFP4, CheckpointSizes
from regard.model_files.size_limit import Budget, kept_as_stored
from regard.model_files.stored_weight import HALVES, StoredWeight
from regard.model_files.suppress_warnings import quiet
from regard.models.model import Model

# A checkpoint's language head is kept, because its logits are part of the trace.
LANGUAGE_HEADS = ("ForMaskedLM", "ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "MTModel")
CLASSIFIERS = ("ForSequenceClassification", "ForTokenClassification", "ForMultipleChoice", "ForQuestionAnswering")
# A checkpoint of another kind of model may lack these modules, because no trace needs them.
UNUSED_MODULES = ("pooler.",)
MIN_QUANTISED = 1 << 14  # numbers; smaller matrices are converted when loaded, which makes them faster to use

STORED = (
    "Weights are kept in half precision{}, as stored, and converted to float32 for each product. Results may differ "
    "slightly from the original model's."
)


def read_checkpoint(
    folder: Path | str,
    name: str,
    file: Any,
    sizes: CheckpointSizes | None,
    dtype: torch.dtype | None,
    spread: dict[str, Any] | None = None,
) -> tuple[Any, tuple[str, ...]]:
    """Build a model with a checkpoint's weights. Return it with notes on missing, unused and quantised weights."""
    import transformers

    options: dict[str, Any] = {"trust_remote_code": False} | (file.options if file else {}) | (spread or {})
    location = file.folder if file else folder
    with load_errors_in_line(name):
        config = transformers.AutoConfig.from_pretrained(
            location, trust_remote_code=False, **(file.options if file else {})
        )
        # because a config may name an attention implementation whose code is on the hub
        config._attn_implementation = None
        # "eager" dequantizes only the experts that are used; others multiply all experts of a layer at once
        keeps = sizes is not None and kept_as_stored(sizes, dtype)
        if keeps and sizes is not None and sizes.mxfp4:
            keeps = getattr(config, "quantization_config", {}).get("quant_method") == "mxfp4"
        config._experts_implementation = "eager" if keeps else None
        model_class = _model_class(config, bool(file))
        options |= {"use_safetensors": True, "dtype": dtype or torch.float32}
        notes: tuple[str, ...] = ()
        if file:
            file.kept = keeps
            notes = (file.note,)
        elif sizes is not None and keeps:
            if sizes.mxfp4:  # else transformers dequantizes
                del config.quantization_config
            options |= {"state_dict": stored_tensors(sizes.files)}
            options |= {"generation_config": _generation_config(location)}
            location, notes = None, (STORED.format(" or MXFP4" * sizes.mxfp4),)
    model, missing, unused = _load_weights(model_class, config, name, location, options, sizes)
    if missing and _checkpoint_lacks_head(model, missing):
        # many checkpoints of sentence encoders lack the language head that their config names
        bare, lacking, others = _load_weights(transformers.AutoModel, config, name, location, options, sizes)
        if not lacking:
            notes += (
                f"The checkpoint lacks the language head of {model_class.__name__} (missing: {missing[0]!r}). regard "
                f"loaded {type(bare).__name__} instead, without logits.",
            )
            model, missing, unused = bare, [], others
    if missing:
        raise RegardError(f"model {name!r} is incomplete: {len(missing)} tensors are missing, the first {missing[0]!r}")
    for module in model.modules():
        if hasattr(module, "chunk_size_feed_forward"):  # else lengths must be multiples of the chunk size
            module.chunk_size_feed_forward = 0
    if unused:
        notes += (f"Unused tensors in the checkpoint: {len(unused)}, such as {unused[0]!r}.",)
    if spread:
        known = dict([*model.named_modules(), *model.named_parameters(remove_duplicate=False), *model.named_buffers()])
        asked = spread["device_map"] if isinstance(spread["device_map"], dict) else ()
        if unknown := [path for path in asked if path not in known]:  # accelerate ignores them
            raise RegardError(f"load: device_map: model {name!r} has no module {unknown[0]!r}")
        counts = Counter(str(device) for device in getattr(model, "hf_device_map", {"": model.device}).values())
        devices = [f"{n} module{'s' * (n > 1)} on {'GPU ' * name.isdecimal()}{name}" for name, n in counts.items()]
        notes += (f"Weights are spread by accelerate: {', '.join(devices)}.",)
    return model, notes


def _load_weights(
    model_class: Any, config: Any, name: str, location: Path | str | None, options: Any, sizes: CheckpointSizes | None
) -> tuple[Any, list[str], list[str]]:
    """Load a checkpoint's weights into a model class. Return the model and the names of missing and unused tensors.

    location: the checkpoint's folder or hub name; None if the options contain the weights.
    """
    import transformers

    if location is None and model_class is transformers.AutoModel:  # it chooses a class only for a folder
        classes = transformers.MODEL_MAPPING[type(config)]
        model_class = classes[0] if isinstance(classes, tuple) else classes
    with load_errors_in_line(name), nullcontext() if sizes is None else Budget(sizes, name):
        model, info = model_class.from_pretrained(
            location,
            config=config,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # the error below names these tensors
            **options,
        )
    for key, shape, needed in info["mismatched_keys"]:
        raise RegardError(
            f"model {name!r} is not whole: tensor {key!r} has shape {tuple(shape)}, its config needs {tuple(needed)}"
        )
    missing = sorted(
        key for key in info["missing_keys"] if class_names(model) or not any(part in key for part in UNUSED_MODULES)
    )
    unused = sorted(key for key in info["unexpected_keys"] if not key.endswith("position_ids"))
    return model, missing, unused


def _generation_config(location: Path | str) -> Any:
    """Read a model's default generation settings from generation_config.json, or config.json if there is none."""
    import transformers

    try:
        return transformers.GenerationConfig.from_pretrained(location)
    except OSError:
        return transformers.GenerationConfig.from_pretrained(location, config_file_name="config.json")


def _checkpoint_lacks_head(model: Any, missing: Sequence[str]) -> bool:
    """Return whether a checkpoint lacks only tensors of the head, none of the bare model inside."""
    bare = model.base_model
    inside = [name for name, module in model.named_modules() if module is bare and module is not model]
    return bool(inside) and not any(key.startswith(f"{name}.") for key in missing for name in inside)


@contextmanager
def load_errors_in_line(name: str) -> Iterator[None]:
    """Convert a transformers exception in the block to a RegardError with a one-line reason. name: the model's name."""
    try:
        yield
    except RegardError:
        raise
    except Exception as error:
        raise RegardError(f"model {name!r} cannot be loaded: {why_model_not_loaded(error)}") from error


def _model_class(config: Any, from_gguf: bool) -> Any:
    """Choose a checkpoint's transformers class: its own, or the bare model if its head isn't supported.

    A GGUF file doesn't name a class, but contains a language model.
    """
    import transformers

    if from_gguf and not config.architectures:
        return transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
    # an encoder-decoder's classifier reads the same text on both sides, so its bare model is traced instead
    heads = LANGUAGE_HEADS + (() if getattr(config, "is_encoder_decoder", False) else CLASSIFIERS)
    for architecture in config.architectures or ():
        known = "For" not in architecture or architecture.endswith(heads)
        if known and hasattr(transformers, architecture):
            return getattr(transformers, architecture)
    return transformers.AutoModel


def check_not_on_disk(model: nn.Module, name: str) -> None:
    """Raise RegardError if a model's first weights are on disk, because token ids are moved to their device."""
    path, first = next(model.named_parameters(), ("", None))
    if first is not None and first.is_meta:
        raise RegardError(
            f"model {name!r}: its first weights, {path!r}, are on disk or were never filled: keep them on a device"
        )


def check_finite_weights(model: nn.Module, name: str) -> None:
    """Raise RegardError if weights contain NaN or infinity.

    Weights on disk aren't checked. If they contain NaN or infinity, the checks of hidden states report it.
    """
    for key, parameter in model.named_parameters():
        if parameter.is_meta:
            continue
        # the sum is faster to check: if it is finite, all terms are; if not, each term is checked
        for tensor in parameter.values_to_check() if hasattr(parameter, "values_to_check") else (parameter,):
            if bool(torch.isfinite(tensor.sum()) or torch.isfinite(tensor).all()):
                continue
            value = "NaN" if bool(torch.isnan(tensor).any()) else "infinity"
            raise RegardError(f"model {name!r}: its weights hold {value}, in tensor {key!r}")


def why_model_not_loaded(error: Exception) -> str:
    """Return a one-line reason why a model could not be loaded, from the error or its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, RecursionError):
        return "one of its files is nested too deep"
    if isinstance(error, MemoryError):
        return "one of its files asks for more memory than there is"
    if isinstance(error, KeyError):
        return f"one of its files has no entry, or an unknown one, {error}"
    if isinstance(error, SafetensorError):
        return f"its safetensors file is truncated or not a safetensors file ({lines[0]})"
    reason = lines[:2] if lines and lines[0].endswith(":") else lines[:1]  # the line after a heading has the reason
    return " ".join(reason) if reason else type(error).__name__


def stored_tensors(files: Sequence[Path]) -> dict[str, Float[Tensor, "..."]]:
    """Read a checkpoint's tensors by name. Large half-precision matrices become `StoredWeight`s.

    The two tensors of an MXFP4 weight become one `StoredWeight`, too. All other tensors are unchanged.
    """
    tensors: dict[str, Tensor] = {}
    blocks: dict[str, dict[str, Tensor]] = {}
    for file in files:
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118
                tensor = opened.get_tensor(name)
                part = next((part for part in MXFP4 if name.endswith(part)), None)
                if part is not None and tensor.dtype == torch.uint8:
                    blocks.setdefault(name.removesuffix(part), {})[part] = tensor
                    continue
                large = tensor.ndim > 1 and tensor.numel() >= MIN_QUANTISED
                tensors[name] = StoredWeight.of(tensor) if large and tensor.dtype in HALVES else tensor
    return tensors | {name: _mxfp4_weight(name, parts) for name, parts in blocks.items()}


def _mxfp4_weight(name: str, parts: Mapping[str, Tensor]) -> Tensor:
    """Build a weight from MXFP4 blocks (..., R, N, 16) and their scales (..., R, N). The rows are its columns."""
    shapes = [tuple(parts[part].shape) if part in parts else None for part in MXFP4]
    blocks, scales = shapes
    if blocks is None or scales is None or blocks != (*scales, 16):
        raise RegardError(
            f"tensor {name!r} in MXFP4 has blocks {blocks} and scales {scales}, expected (..., 16) and (...)"
        )
    rows, quantised = parts["_blocks"].flatten(-2), import_part("regard.gguf.quantised_rows").QuantisedRows
    return StoredWeight.of(quantised(rows, "MXFP4", (32, 16), flipped=True, scale_bytes=parts["_scales"]))


WEIGHTS = "adapter_model.safetensors"
# The adapter settings that peft gets. Others may import modules, as megatron_config does, or read files.
SETTING_NAMES = """
    r lora_alpha target_modules exclude_modules target_parameters layers_to_transform layers_pattern rank_pattern
    alpha_pattern fan_in_fan_out bias lora_bias lora_dropout use_rslora use_dora modules_to_save trainable_token_indices
    ensure_weight_tying init_lora_weights eva_config lora_ga_config peft_type peft_version task_type inference_mode
    base_model_name_or_path revision auto_mapping
"""
SETTINGS = frozenset(SETTING_NAMES.split())


def merge_adapter(opened: Model, folder: str | os.PathLike[str]) -> Model:
    """Add a LoRA adapter to the weights of its base model, as peft merges it.

    Contributions and attribution then use one output projection, as for any model.
    """
    path, called = Path(folder), repr(os.fspath(folder))
    if importlib.util.find_spec("peft") is None:
        raise RegardError(f"adapter {called}: reading it needs peft: pip install 'regard[adapters]'")
    for file in (ADAPTER, WEIGHTS):  # else peft would ask the hub or open a pickle
        if not (path / file).is_file():
            raise RegardError(f"adapter {called}: there is no {file}: pass the folder of an adapter, in safetensors")
    import peft
    from peft.tuners.tuners_utils import BaseTunerLayer

    settings = read_json(path / ADAPTER)
    start = str(settings.get("init_lora_weights"))
    if settings.get("peft_type") != "LORA" or "niter" in start:  # which starts from random numbers
        kind = f"{settings.get('peft_type')!s:.40}, init_lora_weights {start:.40}"
        raise RegardError(f"adapter {called}: its peft_type is {kind}, expected LORA without pissa_niter")
    plain = peft.LoraConfig().to_dict()
    others = [name for name, value in settings.items() if value and value != plain.get(name) and name not in SETTINGS]
    if others:
        raise RegardError(f"adapter {called}: {others[0][:40]!r} in its {ADAPTER} isn't supported")
    try:
        with quiet(), warnings.catch_warnings(action="ignore"):  # tensors are checked below
            used = {name: settings[name] for name in SETTINGS & settings.keys()}
            config = peft.LoraConfig(**used | {"inference_mode": True})
            empty = not start.lower().startswith(("pissa", "olora"))  # which peft computes from the base weights
            with torch.device("meta" if empty else "cpu"):
                wrapped = peft.PeftModel(opened.model, config)
            result = wrapped.load_adapter(str(path), "default", low_cpu_mem_usage=empty)
            if wrong := [*result.unexpected_keys, *result.missing_keys]:
                raise RegardError(f"{len(wrong)} of its tensors, first {wrong[0]!r}")
            tied = getattr(opened.model.config, "tie_word_embeddings", False)
            for layer in list(wrapped.modules()):
                if isinstance(layer, BaseTunerLayer):  # other modules that share the weight keep the original
                    layer.base_layer = copy.deepcopy(layer.base_layer)
            model = wrapped.merge_and_unload(safe_merge=True)
            if tied:  # peft sets this entry to False, but UMT5 scales its logits by it
                model.config.tie_word_embeddings = True
    except Exception as error:  # peft raises various exceptions for a wrong config or shape
        problem = " ".join(str(error).split())[:300] or type(error).__name__
        raise RegardError(f"adapter {called} does not fit {opened.name}: {problem}") from error
    note = f"The LoRA adapter {path.name!r} (rank {config.r}) was added to the weights of {opened.name}."
    return Model(
        model.eval(), opened.tokenizer, name=f"{opened.name} + {Path(os.path.abspath(path)).name}",
        notes=(*opened.notes, note), image_processor=opened.image_processor,
    )  # fmt: skip
