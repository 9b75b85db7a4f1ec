"""What of a hub name is fetched, or in the cache: looked at before anything is built of it, as a folder's files are."""

from pathlib import Path

from regard.errors import RegardError
from regard.files import check_regular
from regard.json_files import read_json
from regard.model_files.config_limits import check_asked, check_quantisation
from regard.model_files.weight_headers import INDEX, SINGLE, Held, held, shards


def check_hub(name: str) -> Held | None:
    """What the checkpoint of a hub name holds; None where the hub has no safetensors of it, but may make some.

    Raises:
        RegardError: its config asks for what its checkpoint cannot hold, its index names something other than
            safetensors, or there is an adapter beside it.
        OSError: it can be had neither from the hub nor from the cache.
    """
    from transformers.utils.hub import cached_file, cached_files

    def had(file: str) -> Path | None:
        found = cached_file(name, file, _raise_exceptions_for_missing_entries=False)
        return None if found is None else Path(found)

    config, where = read_json(str(cached_file(name, "config.json")), infinite=True), f"model {name!r}: config.json"
    check_asked(config, None, where)
    if config.get("transformers_weights") is not None:
        raise RegardError(f"{where} names weights of its own (transformers_weights): needed is {SINGLE}")
    if had("adapter_config.json") is not None:
        raise RegardError(f"model {name!r} has an adapter beside it, which is not applied here: needed is a merged one")
    whole = had(SINGLE)
    if whole is not None:
        files = [whole]
    else:
        index = had(INDEX)
        if index is None:
            return None
        files = [Path(each) for each in cached_files(name, shards(index)) or ()]
    for file in files:
        check_regular(file, "weights")
    found = held(files)
    check_asked(config, found, where)
    check_quantisation(config, found, where)
    return found
