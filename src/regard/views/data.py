"""Everything shown, as JSON at full precision; docs/json.md and see.schema.json describe it."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.explain.sight import Sight
from regard.files import whole

VERSION = 1


def as_data(sight: Sight) -> dict[str, Any]:
    """The sight as JSON's own types. A cosine of a zero vector is null: JSON has no NaN."""
    return {"format": "regard see", "version": VERSION, **_plain(asdict(sight))}


def write_json(sight: Sight, file: Path) -> None:
    """Write the sight as one JSON file, whole or not at all; floats at full precision."""
    text = json.dumps(as_data(sight), ensure_ascii=False, indent=1, allow_nan=False)
    with whole(file) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
