"""The description in a tensor file's metadata, with its format, version and digests; without torch.

Metadata hold two entries: "regard", JSON with "format", "version", the description's own fields, and "digests", the
SHA-256 of each tensor by name; and "regard.digest", the SHA-256 of the first.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.json_files import expect_fields, expect_type, parse_json
from regard.tensor_files.header import read_safetensors_header

DESCRIPTION, DESCRIPTION_DIGEST, DIGESTS = "regard", "regard.digest", "digests"
MAP = "regard attention map"  # the form of a file of one map
VERSION = 1
PENDING = "0" * 64  # in a digest's place until it is known


def metadata_of(form: str, description: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, str]:
    """Write a file's metadata. form: the format's name, such as "regard trace". digests: of the tensors, by name."""
    fields = {"format": form, "version": VERSION, **description, DIGESTS: dict(digests)}
    text = json.dumps(fields, allow_nan=False)
    pending = any(digest == PENDING for digest in digests.values())
    return {DESCRIPTION: text, DESCRIPTION_DIGEST: PENDING if pending else hashlib.sha256(text.encode()).hexdigest()}


def read_description(
    metadata: Mapping[str, str], form: str, tensors: Collection[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read (description, digests of the tensors by name) from a file's metadata. tensors: the names in its header.

    Raises:
        RegardError: it is damaged, is of another format or version, or digests are missing; without the file's name.
    """
    if DESCRIPTION not in metadata or DESCRIPTION_DIGEST not in metadata:
        raise RegardError("it is a safetensors file, but none that regard saved")
    expect_fields("its metadata", dict(metadata), (DESCRIPTION, DESCRIPTION_DIGEST))
    text = metadata[DESCRIPTION]
    try:
        intact = hashlib.sha256(text.encode()).hexdigest() == metadata[DESCRIPTION_DIGEST]
    except UnicodeEncodeError:
        intact = False
    if not intact:
        raise RegardError("it is damaged: its description is not what was saved")
    try:
        fields = expect_type("its description", parse_json(text), dict)
    except RegardError as error:
        raise RegardError(f"its description is damaged: {error}") from None
    for name in ("format", "version"):
        if name not in fields:
            raise RegardError(f"its description: {name!r} is missing")
    if fields["format"] != form:
        raise RegardError(f"it holds a {str(fields['format'])[:40]!r}, needs a {form!r}")
    version = expect_type("version", fields["version"], int)
    if version != VERSION:
        newer = ": update it" if version > VERSION else ""
        raise RegardError(f"it has format version {version}, this regard reads version {VERSION}{newer}")
    digests = expect_fields("its digests", fields.get(DIGESTS), tensors)
    for name, digest in digests.items():
        if len(expect_type(f"the digest of {name!r}", digest, str)) != len(PENDING):
            raise RegardError(f"the digest of {name!r} has {len(digest)} digits, needs {len(PENDING)}")
    return {name: value for name, value in fields.items() if name not in ("format", "version", DIGESTS)}, digests


def format_of_tensor_file(file: Path) -> str | None:
    """Read the form that a file says it has; None where it says nothing of the kind, which opening it then explains."""
    try:
        found = parse_json(read_safetensors_header(file).metadata[DESCRIPTION])
    except (RegardError, OSError, KeyError):
        return None
    return str(found.get("format")) if isinstance(found, dict) else None
