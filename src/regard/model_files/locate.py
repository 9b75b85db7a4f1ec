"""Decide what the name of a model stands for: a folder, a GGUF file, or a name on the model hub."""

import os
from pathlib import Path

from regard.errors import RegardError
from regard.json_files import read_json
from regard.model_files import gguf, hub
from regard.model_files.folder import ADAPTER, CONFIG, names_default_model


def locate_model_files(source: str | os.PathLike[str]) -> Path | str:
    """Find a model: the path of its folder or of its GGUF file, or its name on the hub.

    A folder with one GGUF file and no safetensors stands for that file. A folder or file is there, but not looked into;
    a hub name is in the cache, or the hub has it.
    """
    name, path = os.fspath(source), Path(source)
    if not name.strip():
        raise RegardError("model: given an empty name, needs a folder or a hub name")
    if path.is_dir():
        return gguf.only_gguf_file(path) or path
    if path.suffix.lower() == ".gguf":
        if not path.exists():
            raise hub.missing_model_file_error(name)
        return path
    hub.check_there(hub.check_hub_name(source))
    return name


def model_under_adapter(source: str | os.PathLike[str]) -> str | None:
    """Read which model the adapter in a folder adapts: the path of its folder or file. None for what is no such folder.

    The adapter may come from anybody: the model has to be on this machine, under its full path or in the hub's cache.
    """
    file, folder = Path(source) / ADAPTER, os.fspath(source)
    if not file.is_file() or os.path.lexists(Path(source) / CONFIG):
        return None
    base = str(read_json(file).get("base_model_name_or_path") or "")
    if names_default_model(base):
        return base
    full = os.path.isabs(base)
    if not full and (cached := hub.cached_hub_file(base, CONFIG)) is not None:
        return str(cached.parent)
    if not full or not os.path.exists(base) or os.path.exists(os.path.join(base, ADAPTER)):
        raise RegardError(
            f"{folder!r} adapts {base[:80]!r}, which is no full path of a model and not in the hub's cache: write the "
            f"model's full path in {ADAPTER}, or give both, regard.load(model, adapter=folder)"
        )
    return base
