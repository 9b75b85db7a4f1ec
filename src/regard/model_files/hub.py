"""Check names on the model hub: whether one is valid, in the cache or on the hub, and what its files hold."""

import os
from pathlib import Path

from regard.errors import RegardError, first_line
from regard.files import check_regular, read_json
from regard.model_files.config_limits import check_quantisation, check_sizes_in_config
from regard.model_files.weight_headers import INDEX, SINGLE, CheckpointSizes, files_in_weight_index, held

FILES = (".gguf", ".safetensors", ".bin", ".json")  # what ends so is a file's name, and none on the hub
PATIENCE = 5.0  # seconds that the hub has to answer: its client's own retries take half a minute


def missing_model_file_error(name: str) -> RegardError:
    """Make the error for a model file that is not there."""
    return RegardError(f"model {name!r}: there is no such file")


def check_hub_name(source: str | os.PathLike[str]) -> str:
    """Check that what is no folder and no GGUF file can be a name on the hub, and return it."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    name = os.fspath(source)
    if Path(source).exists():
        raise RegardError(f"model {name!r} is a file: needs a model folder, a GGUF file or a hub name")
    if Path(name).suffix.lower() in FILES:
        raise missing_model_file_error(name)
    if isinstance(source, os.PathLike) or name.startswith((".", "~", os.sep)) or name.count("/") > 1:
        raise RegardError(f"model {name!r}: there is no such folder")
    try:
        validate_repo_id(name)
    except HFValidationError:
        raise RegardError(
            f"model {name!r}: there is no such folder, and it is no name on the hub, which is NAME or OWNER/NAME of "
            "letters, digits, '-', '_' and '.'"
        ) from None
    return name


def cached_hub_file(name: str, file: str) -> Path | None:
    """Find a file of a model in the hub's cache on this machine, None where it is not there."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        path = try_to_load_from_cache(name, file)
    except HFValidationError:
        return None
    return Path(path) if isinstance(path, str) else None


def check_there(name: str) -> None:
    """Check that a model is in the cache or on the hub; the message says why it is not."""
    from huggingface_hub import constants, errors, get_hf_file_metadata, hf_hub_url

    if cached_hub_file(name, "config.json") is not None:
        return
    here = f"model {name!r}: there is no such folder here, and it is not in the cache"
    if constants.is_offline_mode():
        raise RegardError(f"{here} {constants.HF_HUB_CACHE!r}; the hub is not asked, for HF_HUB_OFFLINE is set")
    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=PATIENCE)
        return
    except errors.RepositoryNotFoundError:
        reason = "no model of that name, or one that needs a login or your agreement (hf auth login)"
    except errors.EntryNotFoundError:
        reason = "no config.json of it, so it is not a transformers model"
    except Exception as error:  # no network fails in many ways, all of them of other libraries
        reason = first_line(error)
    raise RegardError(f"{here}; the hub {constants.ENDPOINT} says: {reason}")


def check_hub(name: str) -> CheckpointSizes | None:
    """Check a hub name's files and measure its checkpoint; None where the hub has no safetensors, but may make some."""
    from transformers.utils.hub import cached_file, cached_files

    def had(file: str) -> Path | None:
        path = cached_file(name, file, _raise_exceptions_for_missing_entries=False)
        return None if path is None else Path(path)

    config, where = read_json(str(cached_file(name, "config.json"))), f"model {name!r}: config.json"
    check_sizes_in_config(config, None, where)
    if config.get("transformers_weights") is not None:
        raise RegardError(f"{where} names weights of its own (transformers_weights): needs {SINGLE}")
    if had("adapter_config.json") is not None:
        raise RegardError(f"model {name!r} has an adapter beside it, which is not applied here: needs a merged one")
    whole = had(SINGLE)
    if whole is not None:
        files = [whole]
    else:
        index = had(INDEX)
        if index is None:
            return None
        files = [Path(file) for file in cached_files(name, files_in_weight_index(index)) or ()]
    for file in files:
        check_regular(file, "weights")
    checkpoint = held(files)
    check_sizes_in_config(config, checkpoint, where)
    check_quantisation(config, checkpoint, where)
    return checkpoint
