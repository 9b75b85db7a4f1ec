"""Open the safetensors files that regard writes, without importing torch.

A file's metadata hold `format`, `version`, `description` (JSON) and `sha256`, the checksum of the description and of
every tensor. The checksum finds damage, not tampering: anyone who can write a file can write its checksum too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from regard.errors import RegardError, first_line
from regard.files import check_regular

TRACE, MAP = "regard trace", "regard attention map"  # formats
VERSION = "2"


@contextmanager
def open_tensor_file(file: str | Path, *formats: str, framework: str = "numpy") -> Iterator[Any]:
    """Open a file of one of the formats with the safetensors library. framework: "pt" for torch tensors."""
    what = " or ".join(formats).replace("regard ", "")
    check_regular(file, f"{what} file")
    try:
        with safe_open(file, framework) as opened:
            metadata = opened.metadata() or {}
            form, version = metadata.get("format"), metadata.get("version")
            if form not in formats:
                raise RegardError(f"its format is {form[:40]!r}" if form else "its format is unknown")
            if version != VERSION:
                raise RegardError(f"its version is {str(version)[:40]!r}, this regard reads {VERSION!r}")
            yield opened
    except (OSError, SafetensorError, ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        reason = first_line(error).removeprefix("Error while deserializing header: ")[:200]
        raise RegardError(f"{str(file)!r} is no whole {what} file ({reason}): give a file that regard saved") from error
