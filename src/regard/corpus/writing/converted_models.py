"""Keep the models that were converted for OpenVINO in the user's cache, so that each is converted once."""

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from regard.fetched import cache_folder
from regard.models.model import Model

NAME, WEIGHTS = "model.xml", "model.bin"  # as OpenVINO writes them, side by side
SUMS = "sha256.txt"  # of both
PART = ".part"
LEFT = 24 * 3600  # seconds after which a folder that is being written was left by a process that was killed
PACKAGES = ("openvino", "torch", "transformers", "regard")


def converted_models_folder() -> Path:
    """Return the folder of the converted models, in the user's cache; it may be removed at any time."""
    return cache_folder() / "openvino"


def converted_model_file(model: Model, digest: str, layers: Sequence[int], *, segments: bool, masked: bool) -> Path:
    """Return where a converted model is kept: by all that its conversion depends on.

    digest: of its weights and tokenizer. layers, segments, masked: what it was converted to give and to take.
    """
    own, versions = model.model, [version(each) for each in PACKAGES]
    parts = [digest, type(own).__qualname__, own.config.to_dict(), [*layers], segments, masked, versions]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
    return converted_models_folder() / key[:32] / NAME


def is_converted_model_whole(file: Path) -> bool:
    """Tell whether a converted model that is kept is there, and what was written."""
    try:
        return (file.parent / SUMS).read_text(encoding="utf-8") == _sums(file.parent)
    except OSError:
        return False


def keep_converted_model(converted: Any, file: Path) -> None:
    """Write a converted model where it is kept, whole or not at all; in place of one that is there.

    A cache that cannot be written keeps nothing: the model is converted again the next time.
    """
    import openvino

    folder = file.parent
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for left in folder.parent.glob(f".*{PART}"):
            if time.time() - left.stat().st_mtime > LEFT:
                shutil.rmtree(left, ignore_errors=True)
        temporary = Path(tempfile.mkdtemp(prefix=".", suffix=PART, dir=folder.parent))
        try:
            openvino.save_model(converted, str(temporary / NAME), compress_to_fp16=False)
            (temporary / SUMS).write_text(_sums(temporary), encoding="utf-8")
            if folder.exists():
                folder.rename(temporary / "before")
            temporary.rename(folder)
            shutil.rmtree(folder / "before", ignore_errors=True)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except (OSError, RuntimeError):
        return


def _sums(folder: Path) -> str:
    """The SHA-256 of a converted model's two files, a line each."""
    found = []
    for name in (NAME, WEIGHTS):
        with (folder / name).open("rb") as file:
            found.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n")
    return "".join(found)
