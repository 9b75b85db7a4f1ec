"""What each verb's --json writes, at full precision; docs/json.md, see.schema.json and why.schema.json describe it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard import json_files
from regard.explain.evolution import Evolution
from regard.explain.findings.evolution import evolution_findings

VERSION = 1  # of every format
ON_ONE_LINE = ("regard map",)  # its picture has 65,536 numbers: one a line would be most of the file


def evolution_data(found: Evolution) -> dict[str, Any]:
    """How a sentence's attention formed, as `regard evolve` shows it."""
    return _data("regard evolve", {"findings": evolution_findings(found)} | asdict(found))


def write_json(data: dict[str, Any], file: Path) -> None:
    """Write what one of the functions above made, whole or not at all ("-": to standard output)."""
    json_files.write_json(data, file, indent=None if data.get("format") in ON_ONE_LINE else 1)


def _data(kind: str, entries: dict[str, Any]) -> dict[str, Any]:
    """A file of some format in JSON's own types."""
    return {"format": kind, "version": VERSION, **json_files.plain(entries)}
