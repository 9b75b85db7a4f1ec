"""Find the models that `regard fetch` downloads to the user's cache. `fetched.json` lists them."""

import json
import os
from pathlib import Path
from typing import Any

MODELS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


def cache_folder() -> Path:
    """Return regard's folder in the user's cache, or the folder in REGARD_CACHE. You can delete it at any time."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "regard")
    return Path(os.environ.get("REGARD_CACHE") or usual).expanduser()


def find(name: str) -> Path | None:
    """Return the path of a fetched model, or None. Its environment variable has priority. If empty, it means None."""
    if (named := os.environ.get(MODELS[name]["variable"])) is not None:
        return Path(named) if named else None
    folder = cache_folder() / MODELS[name]["place"]
    return folder if folder.exists() else None


def left_out(name: str) -> str:
    """Return a sentence that says a model is missing and names the command that downloads it."""
    return f"{MODELS[name]['title']} is left out here: run `regard fetch {name}`"
