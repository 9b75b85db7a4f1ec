"""Small stores of a corpus, made by hand: words of known places, with whatever vectors a test wants."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from regard.corpus import schema
from regard.corpus.manifest import Manifest, ModelSummary, ShardSummary
from regard.corpus.shard import ShardTables, sort_rows, write_shard
from regard.text.words import find_spans, words_of


@dataclass
class Document:
    """A document of one part, at some place in its file."""

    name: str
    text: str
    metadata: dict[str, str] = field(default_factory=dict)
    source: str = "a.txt"
    line: int | None = None


def word_rows(documents: Sequence[Document]) -> list[dict[str, object]]:
    """Every word of documents, in their order, as rows.parquet has it."""
    rows: list[dict[str, object]] = []
    for part, document in enumerate(documents):
        spans = sorted({span for word in words_of(document.text) for span in find_spans(document.text, word)})
        for position, (start, end) in enumerate(spans):
            form = document.text[start:end]
            rows.append({"word": form.casefold(), "form": form, "lemma": None, "document": document.name, "part": part,
                         "start": start, "end": end, "window": 0, "position": position + 1, "tokens": 1})  # fmt: skip
    return rows


def write_store(
    folder: Path,
    shards: Sequence[tuple[Sequence[Document], np.ndarray]],
    *,
    model: ModelSummary | None = None,
    layers: Sequence[int] = (5,),
    complete: bool = True,
) -> Path:
    """Write a store of some shards: documents, and the vectors (rows, layers, M) of their words in text order."""
    summaries = []
    folder.mkdir(parents=True, exist_ok=True)
    for number, (documents, vectors) in enumerate(shards):
        rows = pa.Table.from_pylist(word_rows(documents), schema=schema.rows(6, statistics=False, sources=False))
        texts = pa.Table.from_pylist(
            [{"document": d.name, "start": 0, "end": len(d.text), "text": d.text, "source": d.source, "line": d.line,
              "metadata": list(d.metadata.items())} for d in documents],
            schema=schema.texts(),
        )  # fmt: skip
        rows, vectors = sort_rows(rows, vectors)
        name = f"shard{number}"
        write_shard(folder / "shards", name, ShardTables(texts, rows, vectors, schema.spans().empty_table()))
        summaries.append(ShardSummary(name, len(documents), len(rows), len(rows)))
    width = shards[0][1].shape[-1] if shards else 7
    model = model or ModelSummary("made", "made", "", 6, 12, width)
    Manifest(model, {}, {}, [], list(layers), summaries, complete=complete).write(folder)
    return folder
