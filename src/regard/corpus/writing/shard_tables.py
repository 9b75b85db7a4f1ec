"""Make the tables of a shard from what was read: one function a table, by the schemas of `regard.corpus.schema`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from regard.corpus import schema
from regard.corpus.reading.document import Document
from regard.corpus.writing.attention_sums import SUMS
from regard.corpus.writing.read_words import Found, Part

if TYPE_CHECKING:
    import pyarrow as pa

Span = tuple[str, int, int, str, str]  # a row of spans.parquet


def texts_table(documents: Sequence[Document]) -> "pa.Table":
    """Make texts.parquet: a row a part."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {
        "document": [each.id for each in documents],
        "start": [each.start for each in documents],
        "end": [each.start + len(each.text) for each in documents],
        "text": [each.text for each in documents],
        "source": [each.source for each in documents],
        "line": [each.line for each in documents],
        "metadata": [sorted(each.metadata.items()) for each in documents],
    }
    return pa.table(columns, schema=schema.texts())


def spans_table(spans: Sequence[Span]) -> "pa.Table":
    """Make spans.parquet."""
    import pyarrow as pa

    names = schema.spans().names
    columns = dict(zip(names, zip(*spans, strict=True), strict=True)) if spans else {name: [] for name in names}
    return pa.table({name: list(column) for name, column in columns.items()}, schema=schema.spans())


def heads_table(heads: Float[np.ndarray, "N H sums"]) -> "pa.Table":
    """Make heads.parquet from the sums of every layer and head."""
    import pyarrow as pa

    layer, head = (each.ravel().astype(np.int32) for each in np.indices(heads.shape[:2]))
    sums = {name: heads[..., n].ravel() for n, name in enumerate(SUMS)}
    return pa.table({"layer": layer, "head": head} | sums, schema=schema.heads(SUMS))


def rows_table(parts: Sequence[Part], part_rows: Sequence[int], found: Found, depth: int) -> "pa.Table":
    """Make rows.parquet, not sorted yet."""
    import pyarrow as pa

    def joined(each: Any) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *(each(part) for part in parts)])

    forms = [part.document.text[a:b] for part in parts for a, b in zip(part.units.start, part.units.end, strict=True)]
    counts = [len(part.units) for part in parts]
    columns: dict[str, Any] = {
        "word": [word for part in parts for word in part.units.words],
        "form": forms,
        "lemma": [lemma for part in parts for lemma in _lemmas_of_kept_words(part)],
        "document": [part.document.id for part in parts for _ in part.units.words],
        "part": np.repeat(np.array(part_rows, np.int32), counts),
        "start": joined(lambda part: part.units.start + part.document.start),
        "end": joined(lambda part: part.units.end + part.document.start),
        "window": joined(lambda part: part.document_window).astype(np.int32),
        "position": joined(lambda part: part.place).astype(np.int32),
        "tokens": joined(lambda part: part.units.count).astype(np.int32),
    }
    if found.statistics is not None:
        for name, each in zip(schema.STATISTICS, found.statistics, strict=True):
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(each.ravel()), depth)
    if found.sources is not None:
        for name, each in zip(schema.SOURCES, found.sources, strict=True):
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(each.ravel()), depth * schema.TOP)
    wanted = schema.rows(depth, statistics=found.statistics is not None, sources=found.sources is not None)
    return pa.table(columns, schema=wanted)


def _lemmas_of_kept_words(part: Part) -> Sequence[str | None]:
    return [None] * len(part.units) if part.units.lemmas is None else part.units.lemmas
