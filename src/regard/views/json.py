"""What each verb's --json writes, at full precision; docs/json.md, see.schema.json and why.schema.json describe it."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from regard import json_files
from regard.explain.evolution import Evolution
from regard.explain.findings.evolution import evolution_findings
from regard.explain.findings.head_steps import head_steps_findings
from regard.explain.weights.sinks import Sink
from regard.textbook import HeadSteps
from regard.trace.trace import Trace

VERSION = 1  # of every format
ON_ONE_LINE = ("regard map",)  # its picture has 65,536 numbers: one a line would be most of the file


def head_steps_data(
    trace: Trace, layer: int, head: int, found: Sequence[tuple[int, HeadSteps]], sinks: Sequence[Sink]
) -> dict[str, Any]:
    """Every number of `regard steps`: found is the record of each query, with its token's number."""
    return _data(
        "regard steps",
        {
            "findings": head_steps_findings(found, trace.tokens, layer, head, [sink.token for sink in sinks]),
            "text": trace.text,
            "tokens": [asdict(token) for token in trace.tokens],
            "sinks": [asdict(sink) for sink in sinks],
            "layer": layer,
            "head": head,
            "queries": [
                {"token": n, **{field.name: getattr(record, field.name) for field in fields(record)}}
                for n, record in found
            ],
        },
    )


def evolution_data(found: Evolution) -> dict[str, Any]:
    """How a sentence's attention formed, as `regard evolve` shows it."""
    return _data("regard evolve", {"findings": evolution_findings(found)} | asdict(found))


def write_json(data: dict[str, Any], file: Path) -> None:
    """Write what one of the functions above made, whole or not at all ("-": to standard output)."""
    json_files.write_json(data, file, indent=None if data.get("format") in ON_ONE_LINE else 1)


def _data(kind: str, entries: dict[str, Any]) -> dict[str, Any]:
    """A file of some format in JSON's own types."""
    return {"format": kind, "version": VERSION, **json_files.plain(entries)}
