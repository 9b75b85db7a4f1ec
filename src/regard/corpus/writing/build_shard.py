"""Build the tables of a shard: run its documents' windows through the model and store each word's embedding.

The same documents always give the same tables.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from regard.corpus import schema
from regard.corpus.reading.document import Document
from regard.corpus.settings import Settings
from regard.corpus.writing.attention_sums import SUMS, largest_weights_to_store, sum_layer
from regard.corpus.writing.cut_windows import (
    CutText,
    Units,
    WindowSize,
    cut_texts,
    find_tokens,
    find_words,
    window_of_each_word,
)
from regard.corpus.writing.store_folder import ShardTables, sort_rows
from regard.errors import RegardError
from regard.memory import give_memory_back
from regard.models.model import Model
from regard.models.states import StateBatch, count_heads, count_layers, read_states, state_width

if TYPE_CHECKING:
    import pyarrow as pa

HALF = float(np.finfo(np.float16).max)
PASSES = 8  # forward passes after which freed memory is returned to the system: saves up to 140 MiB at the same speed
Span = tuple[str, int, int, str, str]  # a row of spans.parquet


@dataclass(frozen=True, eq=False)
class DocumentReader:
    """The model, stored layers, window size and settings for reading documents."""

    model: Model
    layers: list[int]
    size: WindowSize
    settings: Settings


@dataclass(frozen=True, eq=False)
class _CutPart:
    """A document part cut into windows, with its row in texts.parquet and its stored words.

    window, position (n,): the window in which each word is embedded, and the word's first token there. counted (L,):
    the window in which each token is a query of the heads' sums, -1 for special tokens. None without statistics.
    """

    document: Document
    row: int
    cut: CutText
    units: Units
    window: Int[np.ndarray, " n"]
    position: Int[np.ndarray, " n"]
    counted: Int[np.ndarray, " L"] | None


@dataclass(eq=False)
class _StoredValues:
    """The stored values of all words (or tokens): vectors (n, K, M), statistics (4, n, N), heads (N, H, sums), and
    sources: the starts, ends and weights (n, N · TOP) of the keys with the largest weights."""

    vectors: Float[np.ndarray, "n K M"]
    statistics: Float[np.ndarray, "4 n N"] | None = None
    sources: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    heads: Float[np.ndarray, "N H sums"] | None = None


@dataclass(frozen=True, eq=False)
class _WindowRun:
    """A window that the model reads. words: its words' numbers in the part. rows: their rows in `_StoredValues`."""

    part: _CutPart
    window: int
    words: Int[np.ndarray, " w"]
    rows: Int[np.ndarray, " w"]


@dataclass(frozen=True, eq=False)
class _BatchWords:
    """The words of a batch of windows. at (n,): their rows in `_StoredValues`. row, first, count (n,): each word's
    window in the batch, first token in the window, and number of tokens."""

    at: Int[np.ndarray, " n"]
    row: Int[np.ndarray, " n"]
    first: Int[np.ndarray, " n"]
    count: Int[np.ndarray, " n"]

    def mean(self, values: Float[np.ndarray, "B L *M"]) -> Float[np.ndarray, "n *M"]:
        """Return the mean over each word's tokens."""
        total = values[self.row, self.first].astype(np.float32, copy=False)
        longest = int(self.count.max(initial=1))
        if longest == 1:
            return total
        for token in range(1, longest):
            longer = self.count > token
            total[longer] += values[self.row[longer], self.first[longer] + token]
        return total / self.count.reshape(-1, *[1] * (total.ndim - 1))


def build_shard(reading: DocumentReader, documents: Sequence[Document]) -> ShardTables:
    """Run documents through the model and return the tables of their shard."""
    import pyarrow as pa

    parts: list[_CutPart] = []
    spans: list[Span] = []
    cuts = cut_texts(reading.model, [document.text for document in documents], reading.size)
    for row, (document, cut) in enumerate(zip(documents, cuts, strict=True)):
        if cut is None:
            spans.append(_span_row(document, 0, len(document.text), "dropped"))
            continue
        spans += _spans_not_read_as_written(document, cut, reading.model.tokenizer.unk_token_id)
        part, skipped = _words_to_store(document, row, cut, reading)
        spans += skipped
        parts.append(part)
    values = _run_windows(reading, parts)
    give_memory_back()  # of the forward passes, before the tables are built
    rows, vectors = sort_rows(_rows_table(parts, values, count_layers(reading.model)), values.vectors)
    columns = {name: [span[n] for span in spans] for n, name in enumerate(schema.spans().names)}
    heads = None
    if values.heads is not None:
        layer, head = (numbers.ravel().astype(np.int32) for numbers in np.indices(values.heads.shape[:2]))
        sums = {name: values.heads[..., n].ravel() for n, name in enumerate(SUMS)}
        heads = pa.table({"layer": layer, "head": head} | sums, schema=schema.heads())
    tokens = sum(len(part.cut.ids) for part in parts)
    return ShardTables(texts_table(documents), rows, vectors, pa.table(columns, schema=schema.spans()), heads, tokens)


def _words_to_store(document: Document, row: int, cut: CutText, reading: DocumentReader) -> tuple[_CutPart, list[Span]]:
    """Find the words of a document part to store, and the spans of words that can't be stored."""
    settings, causal = reading.settings, reading.size.causal
    tokens = np.flatnonzero(~cut.special & (cut.ends > cut.starts))
    starts, ends = cut.starts[tokens], cut.ends[tokens]
    if settings.unit == "words":
        units, missed = find_words(document.text, starts, ends, tokens, settings.where, settings.lemma)
    else:
        units, missed = find_tokens(document.text, starts, ends, tokens), []
    window = window_of_each_word(units.first, units.first + units.count - 1, cut.spans, causal)
    long = np.flatnonzero(window < 0)
    skipped = [_span_row(document, int(units.start[n]), int(units.end[n]), "long") for n in long]
    skipped += [_span_row(document, start, end, "dropped") for start, end in missed]
    stored = np.flatnonzero(window >= 0)
    units, window = units.take(stored), window[stored]
    position = units.first - np.array([start for start, _ in cut.spans])[window] + cut.before
    counted = None
    if settings.statistics:
        all_tokens = np.arange(len(cut.ids))
        counted = np.where(cut.special, -1, window_of_each_word(all_tokens, all_tokens, cut.spans, causal))
    return _CutPart(document, row, cut, units, window, position, counted), skipped


def _spans_not_read_as_written(document: Document, cut: CutText, unknown: int | None) -> list[Span]:
    """Return the spans of a document part that the model reads as unknown or special tokens or doesn't read."""
    spans, end = [], 0
    for token in sorted(cut.encoded.tokens, key=lambda token: (token.start, token.end)):
        if document.text[end : token.start].strip():
            spans.append(_span_row(document, end, token.start, "dropped"))
        end = max(end, token.end)
        if token.end > token.start and (token.special or token.id == unknown):
            spans.append(_span_row(document, token.start, token.end, "special" if token.special else "unknown"))
    if document.text[end:].strip():
        spans.append(_span_row(document, end, len(document.text), "dropped"))
    return spans


def _span_row(document: Document, start: int, end: int, kind: str) -> Span:
    """Return a row of spans.parquet for a range of a document, without whitespace at its ends."""
    text = document.text[start:end]
    start += len(text) - len(text.lstrip())
    end -= len(text) - len(text.rstrip())
    return document.id, document.start + start, document.start + end, kind, document.text[start:end]


def texts_table(documents: Sequence[Document]) -> "pa.Table":
    """Return the table of texts.parquet, with a row per document part."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {
        "document": [part.id for part in documents],
        "start": [part.start for part in documents],
        "end": [part.start + len(part.text) for part in documents],
        "text": [part.text for part in documents],
        "source": [part.source for part in documents],
        "line": [part.line for part in documents],
        "metadata": [sorted(part.metadata.items()) for part in documents],
    }
    return pa.table(columns, schema=schema.texts())


def _run_windows(reading: DocumentReader, parts: Sequence[_CutPart]) -> _StoredValues:
    """Run windows through the model: all windows for statistics without a filter, else those with stored words."""
    settings, model, depth = reading.settings, reading.model, count_layers(reading.model)
    all_windows = settings.statistics and settings.where is None  # include windows without a stored word
    runs, count = [], 0
    for part in parts:
        order = np.argsort(part.window, kind="stable")
        edges = np.searchsorted(part.window[order], np.arange(len(part.cut.spans) + 1))
        for window in range(len(part.cut.windows)):
            words = order[edges[window] : edges[window + 1]]
            if len(words) or all_windows:
                runs.append(_WindowRun(part, window, words, count + words))
        count += len(part.units)
    windows = [run.part.cut.windows[run.window] for run in runs]
    values = _StoredValues(np.zeros((count, len(reading.layers), state_width(model)), settings.dtype))
    if settings.statistics:
        values.statistics = np.zeros((4, count, depth), np.float32)
        values.heads = np.zeros((depth, count_heads(model), len(SUMS)))
        if settings.where is not None:
            size = count, depth * schema.TOP
            values.sources = np.full(size, -1), np.full(size, -1), np.zeros(size, np.float32)
    batches = read_states(model, windows, reading.layers, attention=settings.statistics)
    for passes, batch in enumerate(batches, 1):
        _write_batch(reading, values, batch, [runs[n] for n in batch.numbers])
        del batch  # free it before the next pass, which runs before `batch` is rebound
        if passes % PASSES == 0:
            give_memory_back()
    return values


def _write_batch(reading: DocumentReader, stored: _StoredValues, batch: StateBatch, runs: Sequence[_WindowRun]) -> None:
    """Write the states and attention statistics of a batch of windows into the stored values."""
    words = _BatchWords(
        np.concatenate([run.rows for run in runs]),
        np.repeat(np.arange(len(runs)), [len(run.words) for run in runs]),
        np.concatenate([run.part.position[run.words] for run in runs]),
        np.concatenate([run.part.units.count[run.words] for run in runs]),
    )
    states = words.mean(batch.states.transpose(1, 2).float().cpu().numpy())
    largest_state = max(-float(states.min(initial=0)), float(states.max(initial=0)))
    if reading.settings.dtype == "float16" and largest_state > HALF:
        raise RegardError(
            f"states of {reading.model.name} reach {largest_state:.3g}, more than float16 holds: use --dtype float32"
        )
    stored.vectors[words.at] = states
    if stored.statistics is None or stored.heads is None:
        return
    special, is_query = [], []  # per window: special tokens, and tokens included as queries (never the first)
    for run in runs:
        cut, (start, stop) = run.part.cut, run.part.cut.spans[run.window]
        padding = cut.before, len(cut.windows[run.window].ids) - cut.before - (stop - start)
        assert run.part.counted is not None
        special.append(np.pad(cut.special[start:stop], padding, constant_values=True))
        is_query.append(np.pad(run.part.counted[start:stop] == run.window, padding, constant_values=False))
        is_query[-1][0] = False
    ids = np.array([run.part.cut.windows[run.window].ids for run in runs])
    for layer, weights in enumerate(batch.maps):
        sums = sum_layer(weights, ids, np.array(special), np.array(is_query), mean=stored.sources is not None)
        stored.heads[layer] += sums.heads
        for n, name in enumerate(schema.STATISTICS):
            mean = words.mean(getattr(sums, name))
            stored.statistics[n, words.at, layer] = mean * words.count if name == "received" else mean
        if stored.sources is not None and sums.mean is not None:
            _write_largest_weights(stored.sources, layer, words, words.mean(sums.mean), runs)


def _write_largest_weights(
    sources: tuple[np.ndarray, np.ndarray, np.ndarray],
    layer: int,
    words: _BatchWords,
    mean: Float[np.ndarray, "n L"],
    runs: Sequence[_WindowRun],
) -> None:
    """Write the character spans and weights of each word's most attended keys in a layer into `sources`."""
    keys, weights = largest_weights_to_store(mean, schema.TOP)
    columns = slice(layer * schema.TOP, (layer + 1) * schema.TOP)
    for n, row in enumerate(words.at):
        run = runs[words.row[n]]
        cut, offset = run.part.cut, run.part.document.start
        start, stop = cut.spans[run.window]
        token = keys[n] - cut.before + start
        inside = (keys[n] >= cut.before) & (token < stop)
        token = np.where(inside, token, 0)
        inside &= ~cut.special[token]
        for column, edge in zip(sources, (cut.starts, cut.ends), strict=False):
            column[row, columns] = np.where(inside, edge[token] + offset, -1)
        sources[2][row, columns] = weights[n]


def _rows_table(parts: Sequence[_CutPart], stored: _StoredValues, depth: int) -> "pa.Table":
    """Return the unsorted table of rows.parquet."""
    import pyarrow as pa

    def joined(values: Callable[[_CutPart], np.ndarray]) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *map(values, parts)])

    columns: dict[str, Any] = {
        "word": [word for part in parts for word in part.units.words],
        "form": [
            part.document.text[a:b] for part in parts for a, b in zip(part.units.start, part.units.end, strict=True)
        ],
        "lemma": [lemma for part in parts for lemma in part.units.lemmas or (None,) * len(part.units)],
        "document": [part.document.id for part in parts for _ in part.units.words],
        "part": joined(lambda part: np.full(len(part.units), part.row)).astype(np.int32),
        "start": joined(lambda part: part.units.start + part.document.start),
        "end": joined(lambda part: part.units.end + part.document.start),
        "window": joined(lambda part: part.window).astype(np.int32),
        "position": joined(lambda part: part.position).astype(np.int32),
        "tokens": joined(lambda part: part.units.count).astype(np.int32),
    }
    for names, numbers in ((schema.STATISTICS, stored.statistics), (schema.SOURCES, stored.sources)):
        for name, values in zip(names, () if numbers is None else numbers, strict=False):
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    columns_schema = schema.rows(depth, statistics=stored.statistics is not None, sources=stored.sources is not None)
    return pa.table(columns, schema=columns_schema)
