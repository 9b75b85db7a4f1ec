"""Load a model: the default model, a folder, a GGUF file, a hub name, or a model object."""

import importlib.util
import inspect
import os
import re
import threading
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any

import torch
from torch import nn

from regard import memory
from regard.capture.state import of_transformers
from regard.capture.watching.call_sites import without_wrappers
from regard.errors import RegardError, first_line
from regard.files import check_regular, read_json
from regard.lazy import import_part
from regard.model_files.folder import (
    ADAPTER,
    CONFIG,
    DEFAULT_NAME,
    cached_hub_file,
    check_available,
    check_hub_files,
    check_hub_name,
    check_model_folder,
    default_folder,
    file_of_model,
    missing_model_file_error,
    names_default_model,
)
from regard.model_files.limits import CheckpointSizes
from regard.model_files.size_limit import kept_as_stored, require_memory_for_model
from regard.model_files.suppress_warnings import import_models, quiet
from regard.models.kinds import model_file, model_of_source, opened_model_file
from regard.models.model import Model
from regard.models.read_checkpoint import (
    check_finite_weights,
    check_not_on_disk,
    load_errors_in_line,
    merge_adapter,
    read_checkpoint,
    why_model_not_loaded,
)
from regard.nn.bert import read_bert
from regard.nn.folder import is_transformer_folder, newest_transformer_folder, read_model
from regard.nn.transformer import Transformer
from regard.text.tokenizers import read_bert_tokenizer, read_tokenizer
from regard.text.tokens import tokenizer_errors

TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model", "source.spm")
PROCESSOR_FILE, BOTH_FILE = "preprocessor_config.json", "processor_config.json"  # images; texts with images
DTYPES = ("float32", "bfloat16", "float16")  # dtypes for computation
_BUILD_LOCK = threading.RLock()  # while transformers builds a model, it changes torch for the whole process


def load(
    source: Any = None,
    *,
    tokenizer: Any = None,
    processor: Any = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "auto",
    adapter: str | os.PathLike[str] | None = None,
    device_map: str | dict[str, str | int] | None = None,
    offload_folder: str | os.PathLike[str] | None = None,
) -> Model:
    """Open a model to trace texts with it.

    Args:
        source: None or "all-MiniLM-L6-v2" for the default model (extra `minilm`); a folder; a GGUF file, or a folder
            whose only weights are a GGUF file (extra `gguf`); a name on the model hub; a transformers model object,
            which regard leaves unchanged between traces; a vision transformer of timm or torchvision; or a
            `regard.Transformer`, its folder, or the folder of a training run, whose newest complete checkpoint is read.
            For a transformers pipeline, a SentenceTransformer, a PeftModel, DataParallel or a compiled model, regard
            uses the model inside.
        tokenizer: the tokenizer of a model object, or a replacement for the folder's.
        processor: the processor of a model object that reads images (or texts with images), or a replacement for the
            folder's. For torchvision, `weights.transforms()`.
        device: where to run. Default: a CUDA device if there is one, else the CPU. A model object stays on its device.
        dtype: "auto" computes in float32, but keeps bfloat16 and float16 weights as stored, mapped into memory. On a
            CPU, it also keeps MXFP4 and GGUF weights. Don't change the file while you use the model. "float32" converts
            all weights first. "bfloat16" and "float16" compute in half precision, and the status of a trace reports the
            difference from float32 arithmetic. A model object keeps its dtype.
        adapter: the folder of a PEFT LoRA adapter for this model (extra `adapters`). It is added to the model's
            weights, in float32 unless you set `dtype`. If you pass an adapter's folder as source, regard opens the
            adapter's base model, from its full path or the hub's cache, without a download.
        device_map: "auto", or the device of each module, as in Hugging Face accelerate: GPUs by number, "cpu", "disk".
            Weights are moved to the device that uses them. "auto" for `dtype` is then float32.
        offload_folder: the folder for weights that `device_map` puts on disk. Default: they are read from the model's
            own files. Models whose weights change on loading need a folder.

    On a CPU, regard's own `Transformer` runs the default model and folders of a plain BERT in float32: the same weights
    and tokens, without importing transformers. When you access `.model` or `.tokenizer` of the returned model, regard
    opens the transformers objects and uses them from then on.

    Weights are read from safetensors or GGUF. Code in a model's folder is never run. The status of a trace notes that a
    GGUF file is quantised.

    Raises:
        RegardError: the model doesn't exist, or its files are incomplete. The message names the file.
    """
    dtype = str(dtype).removeprefix("torch.")
    if dtype not in ("auto", *DTYPES):
        raise RegardError(f"dtype: got {dtype!r}, expected one of auto, {', '.join(DTYPES)}")
    precision = None if dtype == "auto" else getattr(torch, dtype)
    for name, argument in {"tokenizer": tokenizer, "processor": processor}.items():
        if argument is not None and (isinstance(argument, type) or not callable(argument)):
            origin = f"as transformers.Auto{name.title()}.from_pretrained makes it"
            raise RegardError(f"{name}: got {type(argument).__name__}, expected the object itself, {origin}")
    is_object = not isinstance(source, (str, os.PathLike, NoneType))
    if not is_object and source is not None and adapter is None and (base := model_under_adapter(source)) is not None:
        adapter, source = source, base
    spread: dict[str, Any] | None = None
    if device_map is not None or offload_folder is not None:
        if not device_map:
            expected = "'auto', or a dictionary of modules and devices"
            raise RegardError(f"load: device_map: got {device_map!r}, expected {expected}")
        if device is not None or adapter is not None or is_object:
            raise RegardError("load: device_map works for a folder or hub name, without device and adapter")
        if importlib.util.find_spec("accelerate") is None:
            raise RegardError("load: device_map needs accelerate: pip install 'regard[distributed]'")
        spread = {"device_map": device_map, "offload_folder": offload_folder}
    if is_object:
        if adapter is not None:
            raise RegardError("load: an adapter would change the model object: pass the model's folder instead")
        return _open_object(*unwrap_model(source, tokenizer, processor), device, dtype)
    if adapter is not None:
        wide = "float32" if dtype == "auto" else dtype
        opened = load(source, tokenizer=tokenizer, processor=processor, device=device, dtype=wide)
        return merge_adapter(opened, adapter)
    folder: Path | str
    sizes: CheckpointSizes | None = None
    if source is None or names_default_model(source):
        folder, name, called = default_folder(), DEFAULT_NAME, DEFAULT_NAME
    else:
        if not Path(source).is_dir() and (of_kind := model_of_source(source, tokenizer, processor)) is not None:
            return of_kind
        (folder, sizes), name = _locate_checked_model(source), str(source)
        called = Path(os.path.abspath(source)).name if isinstance(folder, Path) else name
        if cached := re.search(r"models--(.+).snapshots.\w+$", os.path.abspath(source)):
            called = cached[1].replace("--", "/")
    where = memory.device_to_load_on(device)
    if isinstance(folder, Path) and is_transformer_folder(folder):
        if spread:
            raise RegardError("load: device_map: a regard.Transformer runs on one device")
        if precision not in (None, torch.float32):
            raise RegardError(f"load: dtype {dtype}: a regard.Transformer is loaded in float32 only")
        transformer, own_tokenizer = read_model(folder)
        check_finite_weights(transformer, name)
        tokenizer = own_tokenizer if tokenizer is None else tokenizer
        return Model(transformer.to(where), tokenizer, name=called, image_processor=processor)
    through_transformers = partial(
        _load_checkpoint, folder, sizes, name, called, where, precision, spread, tokenizer, processor
    )
    plain = where.type == "cpu" and precision in (None, torch.float32) and not spread
    if plain and isinstance(folder, Path) and folder.is_dir() and tokenizer is processor is None:
        if sizes is not None:
            require_memory_for_model(sizes, where, name, precision)
        read = read_bert_tokenizer(folder)
        bert = None if read is None else read_bert(folder)
        if bert is not None:
            return Model(bert, read, name=called, original=through_transformers)
    return through_transformers()


def _open_object(source: Any, tokenizer: Any, processor: Any, device: Any, dtype: str) -> Model:
    """Open a model object, which keeps its device and dtype."""
    if isinstance(source, nn.Module):
        if dtype != "auto":
            raise RegardError(f"load: a model object computes in its own dtype: leave out dtype {dtype}")
        current_device = next(source.parameters(), torch.zeros(0)).device.type
        if device is not None and memory.device_to_load_on(device).type != current_device:
            moved = f"move it with .to({str(device)!r}) first"
            raise RegardError(f"load: the model object is on {current_device}: {moved}")
    if isinstance(source, Transformer):
        return Model(source, tokenizer, name="transformer", image_processor=processor)
    if of_transformers(source, "PreTrainedModel"):
        name = str(getattr(source.config, "_name_or_path", "") or type(source).__name__)
        check_not_on_disk(source, name)
        return Model(source, tokenizer, name=name, image_processor=processor)
    if (of_kind := model_of_source(source, tokenizer, processor)) is not None:
        return of_kind
    if not isinstance(source, nn.Module):
        raise RegardError(f"load: got {type(source).__name__}, expected a folder, a hub name or a model object")
    needs = "a model object of transformers, timm or torchvision, or ours"
    instead = "regard.watch(model) shows the attention of any module"
    raise RegardError(f"load: got a {type(source).__name__}, expected {needs}; {instead}")


def _load_checkpoint(
    folder: Path | str, sizes: CheckpointSizes | None, name: str, called: str, where: torch.device,
    precision: torch.dtype | None, spread: dict[str, Any] | None, tokenizer: Any, processor: Any,
) -> Model:  # fmt: skip
    """Open a checkpoint with transformers. sizes: of a folder's checkpoint, None if not yet known."""
    if isinstance(folder, Path) and not folder.exists():
        raise RegardError(f"load: {str(folder)!r} no longer exists")
    import_models()
    with _BUILD_LOCK, quiet(), opened_model_file(folder) as file:
        if sizes is None and file is not None:
            sizes = file.held
        elif sizes is None and isinstance(folder, str):
            with load_errors_in_line(name):
                sizes = check_hub_files(folder)
        if spread and file is not None:
            raise RegardError("load: device_map: a GGUF file is loaded on one device")
        if spread:
            precision = precision or torch.float32
        if where.type != "cpu" and (file is not None or (sizes is not None and sizes.mxfp4)):
            precision = precision or torch.float32  # only on a CPU do quantised weights stay as stored
        if sizes is not None and not spread:  # accelerate checks the memory itself
            require_memory_for_model(sizes, where, name, precision)
        try:
            model, notes = read_checkpoint(folder, name, file, sizes, precision, spread)
        except RegardError as error:
            if not kept_as_stored(sizes, precision):
                raise
            assert sizes is not None
            require_memory_for_model(sizes, where, name, torch.float32)
            # float32 helps if the architecture changes its weights on loading; a broken file fails again
            model, notes = read_checkpoint(folder, name, file, sizes, torch.float32)
            notes += (f"Weights were read in float32, because they can't be kept as stored ({error}).",)
        tokenizer = tokenizer if tokenizer is not None else _read_tokenizer(folder, name, file)
        if processor is None and not file and "pixel_values" in inspect.signature(model.forward).parameters:
            pictures_alone = model.main_input_name == "pixel_values"
            files = (PROCESSOR_FILE,) if pictures_alone else (BOTH_FILE, PROCESSOR_FILE)
            if any(file_of_model(folder, candidate) for candidate in files):
                processor = read_processor(folder, texts=not pictures_alone)
    if spread:
        check_not_on_disk(model, name)
    check_finite_weights(model, name)
    model = model.eval() if spread else model.to(where).eval()
    return Model(model, tokenizer, name=called, notes=notes, image_processor=processor)


def read_processor(source: Any, *, texts: bool) -> Any:
    """Open the image processor of a folder or hub name without running its code.

    texts: open the processor of texts with images instead.
    """
    import transformers

    file = BOTH_FILE if texts else PROCESSOR_FILE
    with quiet():
        try:
            kind = transformers.AutoProcessor if texts else transformers.AutoImageProcessor
            return kind.from_pretrained(source, backend="pil", trust_remote_code=False)
        except Exception as error:  # broken JSON and unknown names raise various exceptions
            raise RegardError(f"{file} of {str(source)!r} cannot be used: {first_line(error)}") from error


def load_tokenizer(source: str | os.PathLike[str] | None = None) -> Any:
    """Load only the tokenizer of the default model, a folder or a hub name.

    Raises:
        RegardError: the model doesn't exist, or it has no tokenizer.
    """
    source = None if source is None else model_under_adapter(source) or source
    source = None if names_default_model(source) else source
    name = DEFAULT_NAME if source is None else str(source)
    folder = default_folder(weights=False) if source is None else _locate_checked_model(source)[0]
    if isinstance(folder, Path) and is_transformer_folder(folder):
        at = newest_transformer_folder(folder)
        tokenizer = read_tokenizer(at) if (at / "tokenizer.json").exists() else None
    elif isinstance(folder, Path) and (bert := read_bert_tokenizer(folder)) is not None:
        return bert
    else:
        import_models()
        with quiet(), opened_model_file(folder) as file:
            tokenizer = _read_tokenizer(folder, name, file)
    if tokenizer is None:
        raise RegardError(f"model {name!r} has no tokenizer")
    return tokenizer


def _locate_checked_model(source: str | os.PathLike[str]) -> tuple[Path | str, CheckpointSizes | None]:
    """Find and check a model. Return its folder, GGUF file or hub name, and the sizes of a folder's checkpoint."""
    location = locate_model_files(source)
    if isinstance(location, Path) and location.is_dir():
        return location, None if is_transformer_folder(location) else check_model_folder(location)
    if isinstance(location, Path):
        check_regular(location, "model")
    return location, None


def _read_tokenizer(folder: Path | str, name: str, file: Any) -> Any:
    """Open a checkpoint's tokenizer. Return None if it has none (transformers would create an empty tokenizer)."""
    if file is not None:
        if not file.has_tokenizer:
            return None
    elif isinstance(folder, Path) and not any((folder / name).exists() for name in TOKENIZER_FILES):
        return None
    import transformers

    options = file.options if file else {}
    location = file.folder if file else folder
    with tokenizer_errors(f"model {name!r}: its tokenizer cannot be loaded"):
        try:
            return transformers.AutoTokenizer.from_pretrained(location, trust_remote_code=False, **options)
        except Exception as error:  # the tokenizers library raises bare Exception for a broken tokenizer.json
            raise RegardError(why_model_not_loaded(error)) from error


def locate_model_files(source: str | os.PathLike[str]) -> Path | str:
    """Find a model, and return the path of its folder or GGUF file, or its hub name.

    If a folder has one GGUF file and no safetensors, this file is returned. The folder or file must exist (its content
    isn't checked), and a hub name must be in the cache or on the hub.
    """
    name, path = os.fspath(source), Path(source)
    if not name.strip():
        raise RegardError("model: got an empty name, expected a folder or a hub name")
    if path.is_dir():
        return (model_file(path) or (path,))[0]
    if model_file(path) is not None:
        if not path.exists():
            raise missing_model_file_error(name)
        return path
    if path.suffix.lower() == ".gguf":
        import_part("regard.gguf")
    check_available(check_hub_name(source))
    return name


def model_under_adapter(source: str | os.PathLike[str]) -> str | None:
    """Return the path of the base model of an adapter's folder, or None if the folder has no adapter.

    Adapters may be untrusted, so the base model must be on this machine, at its full path or in the hub's cache.
    """
    file = Path(source) / ADAPTER
    if not file.is_file() or os.path.lexists(Path(source) / CONFIG):
        return None
    base = str(read_json(file).get("base_model_name_or_path") or "")
    if names_default_model(base):
        return base
    cached = None if os.path.isabs(base) else cached_hub_file(base, CONFIG)
    if cached is not None:
        return str(cached.parent)
    if not os.path.isabs(base) or not os.path.exists(base) or os.path.exists(os.path.join(base, ADAPTER)):
        raise RegardError(
            f"{os.fspath(source)!r} adapts {base[:80]!r}, which is neither a full model path nor in the hub's cache: "
            f"write the model's full path in {ADAPTER}, or pass both, regard.load(model, adapter=folder)"
        )
    return base


SENTENCE_MODELS = {"SentenceTransformer", "SparseEncoder", "CrossEncoder"}  # classes of sentence-transformers


def unwrap_model(source: Any, tokenizer: Any, processor: Any) -> tuple[Any, Any, Any]:
    """Return the (model, tokenizer, processor) inside a wrapper, such as a pipeline or a PeftModel.

    A tokenizer or processor that you pass replaces the wrapper's. Other sources are returned unchanged.
    """
    classes = {base.__name__ for base in type(source).__mro__}  # by name, because their packages may not be installed
    inner: Any = source
    if of_transformers(source, "Pipeline"):
        inner = source.model
        tokenizer = source.tokenizer if tokenizer is None else tokenizer
        processor = processor or getattr(source, "processor", None) or source.image_processor
    elif classes & SENTENCE_MODELS:
        inner = getattr(source, "transformers_model", None) or getattr(source, "model", None)
        if not isinstance(inner, nn.Module):
            raise RegardError(f"load: got a {type(source).__name__} without a transformers model")
        tokenizer = source.tokenizer if tokenizer is None else tokenizer
    elif "PeftModel" in classes:
        if not hasattr(source.base_model, "merge_and_unload"):
            kind = source.peft_config[source.active_adapter].peft_type.value
            raise RegardError(f"load: {kind} isn't part of its weights: pass model.get_base_model(), without it")
        inner = source.get_base_model()  # its layers contain the adapter
    elif isinstance(source, nn.Module):
        inner = without_wrappers(source)
    return (source, tokenizer, processor) if inner is source else unwrap_model(inner, tokenizer, processor)
