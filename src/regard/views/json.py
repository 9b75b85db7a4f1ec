"""Everything shown, as JSON at full precision; docs/json.md, see.schema.json and why.schema.json describe it."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard import json_files
from regard.explain.summary import Summary
from regard.explain.why import Why
from regard.trace.trace import Status

VERSION = 1
WHY_VERSION = 1


def as_data(summary: Summary) -> dict[str, Any]:
    """The summary as JSON's own types. A cosine of a zero vector is null: JSON has no NaN."""
    return {"format": "regard see", "version": VERSION, **_plain(asdict(summary))}


def why_data(
    found: Sequence[tuple[str, Why]],
    texts: Sequence[tuple[str, str | None]],
    generated: Sequence[bool],
    statuses: Sequence[Status],
) -> dict[str, Any]:
    """The rankings of each occurrence, by its label, as JSON's own types. texts: each with its target, if any."""
    words = []
    for label, why in found:
        words.append({"label": label, **asdict(why)})
        for name in ("tokens_agreement", "heads_agreement"):
            words[-1][name] = dict(zip(("weight", "contribution"), words[-1][name], strict=True))
    return {
        "format": "regard why",
        "version": WHY_VERSION,
        "texts": [text for text, _ in texts],
        "targets": [target for _, target in texts],
        "generated": list(generated),
        "words": _plain(words),
        "statuses": _plain([asdict(status) for status in statuses]),
    }


def write_json(summary: Summary, file: Path) -> None:
    """Write the summary as one JSON file, whole or not at all ("-": to standard output); floats at full precision."""
    json_files.write_json(as_data(summary), file, indent=1)


def write_why(
    found: Sequence[tuple[str, Why]],
    texts: Sequence[tuple[str, str | None]],
    generated: Sequence[bool],
    statuses: Sequence[Status],
    file: Path,
) -> None:
    """Write rankings as one JSON file, whole or not at all ("-": to standard output); floats at full precision."""
    json_files.write_json(why_data(found, texts, generated, statuses), file, indent=1)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
