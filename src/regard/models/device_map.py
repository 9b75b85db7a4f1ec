"""Spread a model's weights over devices and the disk, by Hugging Face accelerate."""

import importlib.util
import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

from torch import nn

from regard.errors import RegardError


def checked_device_map(
    device_map: str | Mapping[str, str | int] | None, offload_folder: str | os.PathLike[str] | None
) -> dict[str, Any]:
    """Return what transformers takes to spread a model. Both as `regard.load` takes them."""
    if device_map is None:
        raise RegardError("load: given offload_folder, needs device_map too: what lies there")
    if device_map != "auto" and not (isinstance(device_map, Mapping) and device_map):
        raise RegardError(
            f"load: device_map: given {device_map!r}, needs 'auto', or a dictionary of modules and their devices"
        )
    places = "auto" if isinstance(device_map, str) else dict(device_map)
    if importlib.util.find_spec("accelerate") is None:
        raise RegardError("load: device_map needs accelerate: pip install 'regard[distributed]'")
    if isinstance(places, dict) and "disk" in places.values() and offload_folder is None:
        raise RegardError("load: device_map has modules on disk, needs offload_folder: where their weights lie")
    return {"device_map": places} | ({} if offload_folder is None else {"offload_folder": os.fspath(offload_folder)})


def check_spread_model(model: nn.Module, spread: dict[str, Any], name: str) -> None:
    """Check that a model was spread as it was asked for. spread: of `checked_device_map`."""
    known = [path for path, _ in model.named_modules()]
    given = [] if spread["device_map"] == "auto" else list(spread["device_map"])
    unknown = [path for path in given if path not in known and path not in dict(model.named_parameters())]
    if unknown:
        inner = ", ".join(repr(path) for path in sorted(known, key=lambda path: path.count("."))[1:5])
        raise RegardError(f"load: device_map: model {name!r} has no module {unknown[0]!r}; it has {inner} and more")


def device_map_note(model: nn.Module) -> str:
    """Say on which devices the modules of a model lie that accelerate has spread."""
    places = Counter(str(place) for place in getattr(model, "hf_device_map", {"": model.device}).values())
    devices = [f"{n} module{'s' * (n > 1)} on {'GPU ' * name.isdecimal()}{name}" for name, n in places.items()]
    return f"Weights are spread by accelerate: {', '.join(devices)}."
