"""Make the tables of a shard: run its documents' windows through the model, and keep what is requested of every word.

The same documents give the same tables.
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
PASSES = 8  # after so many what was freed goes back to the system: 140 MiB less at most, and no slower
Span = tuple[str, int, int, str, str]  # a row of spans.parquet


@dataclass(frozen=True, eq=False)
class DocumentReader:
    """With what the documents are read: the model, the layers whose states are kept, the windows and the settings."""

    model: Model
    layers: list[int]
    size: WindowSize
    settings: Settings


@dataclass(frozen=True, eq=False)
class _CutPart:
    """A part of a document, its row in texts.parquet, and its words that are kept.

    window, place (n,): the window that each word is taken from, and its first token there. counted (L,): the window in
    which each token counts as a query of the heads' sums, -1 for special ones; None without statistics.
    """

    document: Document
    row: int
    cut: CutText
    units: Units
    window: Int[np.ndarray, " n"]
    place: Int[np.ndarray, " n"]
    counted: Int[np.ndarray, " L"] | None


@dataclass(eq=False)
class _UnitVectors:
    """What is kept of every unit, in the order of the parts: vectors (n, K, M), statistics (4, n, N), and of the
    largest weights the keys' characters (n, N · TOP) and weights; heads (N, H, sums)."""

    vectors: Float[np.ndarray, "n K M"]
    statistics: Float[np.ndarray, "4 n N"] | None = None
    sources: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    heads: Float[np.ndarray, "N H sums"] | None = None


@dataclass(frozen=True, eq=False)
class _Run:
    """A window that is read: its part, its number there, the numbers of its words in the part, and their rows."""

    part: _CutPart
    window: int
    words: Int[np.ndarray, " w"]
    rows: Int[np.ndarray, " w"]


@dataclass(frozen=True, eq=False)
class _Words:
    """The words of a batch: at (n,) their places in what is kept; row, first, count (n,): window of the batch, first
    token there and how many."""

    at: Int[np.ndarray, " n"]
    row: Int[np.ndarray, " n"]
    first: Int[np.ndarray, " n"]
    count: Int[np.ndarray, " n"]

    def mean(self, values: Float[np.ndarray, "B L *M"]) -> Float[np.ndarray, "n *M"]:
        """The mean over each word's tokens."""
        total = values[self.row, self.first].astype(np.float32, copy=False)
        longest = int(self.count.max(initial=1))
        if longest == 1:
            return total
        for more in range(1, longest):
            has = self.count > more
            total[has] += values[self.row[has], self.first[has] + more]
        return total / self.count.reshape(-1, *[1] * (total.ndim - 1))


def build_shard(reading: DocumentReader, documents: Sequence[Document]) -> ShardTables:
    """Read documents and make the tables of their shard."""
    import pyarrow as pa

    parts: list[_CutPart] = []
    spans: list[Span] = []
    cuts = cut_texts(reading.model, [document.text for document in documents], reading.size)
    for row, (document, cut) in enumerate(zip(documents, cuts, strict=True)):
        if cut is None:
            spans.append(_span(document, 0, len(document.text), "dropped"))
            continue
        spans += _unread(document, cut, reading.model.tokenizer.unk_token_id)
        part, lost = _part(document, row, cut, reading)
        spans += lost
        parts.append(part)
    kept = _read_words(reading, parts)
    give_memory_back()  # what the passes took, before the tables take theirs
    rows, vectors = sort_rows(_rows_table(parts, kept, count_layers(reading.model)), kept.vectors)
    columns = {name: [span[n] for span in spans] for n, name in enumerate(schema.spans().names)}
    heads = None
    if kept.heads is not None:
        layer, head = (numbers.ravel().astype(np.int32) for numbers in np.indices(kept.heads.shape[:2]))
        sums = {name: kept.heads[..., n].ravel() for n, name in enumerate(SUMS)}
        heads = pa.table({"layer": layer, "head": head} | sums, schema=schema.heads())
    tokens = sum(len(part.cut.ids) for part in parts)
    return ShardTables(texts_table(documents), rows, vectors, pa.table(columns, schema=schema.spans()), heads, tokens)


def _part(document: Document, row: int, cut: CutText, reading: DocumentReader) -> tuple[_CutPart, list[Span]]:
    """The words of a part that are kept, and spans of those that aren't read whole."""
    settings, causal = reading.settings, reading.size.causal
    tokens = np.flatnonzero(~cut.special & (cut.ends > cut.starts))
    starts, ends = cut.starts[tokens], cut.ends[tokens]
    if settings.unit == "words":
        units, missed = find_words(document.text, starts, ends, tokens, settings.where, settings.lemma)
    else:
        units, missed = find_tokens(document.text, starts, ends, tokens), []
    window = window_of_each_word(units.first, units.first + units.count - 1, cut.spans, causal)
    long = np.flatnonzero(window < 0)
    lost = [_span(document, int(units.start[n]), int(units.end[n]), "long") for n in long]
    lost += [_span(document, start, end, "dropped") for start, end in missed]
    kept = np.flatnonzero(window >= 0)
    units, window = units.take(kept), window[kept]
    place = units.first - np.array([start for start, _ in cut.spans])[window] + cut.before
    counted = None
    if settings.statistics:
        every = np.arange(len(cut.ids))
        counted = np.where(cut.special, -1, window_of_each_word(every, every, cut.spans, causal))
    return _CutPart(document, row, cut, units, window, place, counted), lost


def _unread(document: Document, cut: CutText, unknown: int | None) -> list[Span]:
    """The characters of a part that the model doesn't read as they stand. unknown: the id that stands for such."""
    spans, at = [], 0
    for token in sorted(cut.encoded.tokens, key=lambda token: (token.start, token.end)):
        if document.text[at : token.start].strip():
            spans.append(_span(document, at, token.start, "dropped"))
        at = max(at, token.end)
        if token.end > token.start and (token.special or token.id == unknown):
            spans.append(_span(document, token.start, token.end, "special" if token.special else "unknown"))
    if document.text[at:].strip():
        spans.append(_span(document, at, len(document.text), "dropped"))
    return spans


def _span(document: Document, start: int, end: int, kind: str) -> Span:
    """A row of spans.parquet, without the blanks around it."""
    text = document.text[start:end]
    start += len(text) - len(text.lstrip())
    end -= len(text) - len(text.rstrip())
    return document.id, document.start + start, document.start + end, kind, document.text[start:end]


def texts_table(documents: Sequence[Document]) -> "pa.Table":
    """Make texts.parquet: a row per part."""
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


def _read_words(reading: DocumentReader, parts: Sequence[_CutPart]) -> _UnitVectors:
    """Run the windows that have kept words through the model; all windows where heads are summed over everything."""
    settings, model, depth = reading.settings, reading.model, count_layers(reading.model)
    everything = settings.statistics and settings.where is None  # also the windows without a kept word
    runs, count = [], 0
    for part in parts:
        order = np.argsort(part.window, kind="stable")
        edges = np.searchsorted(part.window[order], np.arange(len(part.cut.spans) + 1))
        for window in range(len(part.cut.windows)):
            words = order[edges[window] : edges[window + 1]]
            if len(words) or everything:
                runs.append(_Run(part, window, words, count + words))
        count += len(part.units)
    windows = [run.part.cut.windows[run.window] for run in runs]
    kept = _UnitVectors(np.zeros((count, len(reading.layers), state_width(model)), settings.dtype))
    if settings.statistics:
        kept.statistics = np.zeros((4, count, depth), np.float32)
        kept.heads = np.zeros((depth, count_heads(model), len(SUMS)))
        if settings.where is not None:
            size = count, depth * schema.TOP
            kept.sources = np.full(size, -1), np.full(size, -1), np.zeros(size, np.float32)
    batches = read_states(model, windows, reading.layers, attention=settings.statistics)
    for passes, batch in enumerate(batches, 1):
        _add_batch(reading, kept, batch, [runs[n] for n in batch.numbers])
        del batch  # the next pass runs before the name is given to what it makes
        if passes % PASSES == 0:
            give_memory_back()
    return kept


def _add_batch(reading: DocumentReader, kept: _UnitVectors, batch: StateBatch, runs: Sequence[_Run]) -> None:
    """Put what a batch gave in its places. runs: its windows."""
    words = _Words(
        np.concatenate([run.rows for run in runs]),
        np.repeat(np.arange(len(runs)), [len(run.words) for run in runs]),
        np.concatenate([run.part.place[run.words] for run in runs]),
        np.concatenate([run.part.units.count[run.words] for run in runs]),
    )
    states = words.mean(batch.states.transpose(1, 2).float().cpu().numpy())
    most = max(-float(states.min(initial=0)), float(states.max(initial=0)))
    if reading.settings.dtype == "float16" and most > HALF:
        raise RegardError(
            f"states of {reading.model.name} reach {most:.3g}, more than float16 holds: use --dtype float32"
        )
    kept.vectors[words.at] = states
    if kept.statistics is None or kept.heads is None:
        return
    special, asks = [], []  # which tokens are special, and which count as queries: never a window's first
    for run in runs:
        cut, (start, stop) = run.part.cut, run.part.cut.spans[run.window]
        around = cut.before, len(cut.windows[run.window].ids) - cut.before - (stop - start)
        assert run.part.counted is not None
        special.append(np.pad(cut.special[start:stop], around, constant_values=True))
        asks.append(np.pad(run.part.counted[start:stop] == run.window, around, constant_values=False))
        asks[-1][0] = False
    ids = np.array([run.part.cut.windows[run.window].ids for run in runs])
    for layer, weights in enumerate(batch.maps):
        sums = sum_layer(weights, ids, np.array(special), np.array(asks), mean=kept.sources is not None)
        kept.heads[layer] += sums.heads
        for n, name in enumerate(schema.STATISTICS):
            mean = words.mean(getattr(sums, name))
            kept.statistics[n, words.at, layer] = mean * words.count if name == "received" else mean
        if kept.sources is not None and sums.mean is not None:
            _put_sources(kept.sources, layer, words, words.mean(sums.mean), runs)


def _put_sources(
    sources: tuple[np.ndarray, np.ndarray, np.ndarray],
    layer: int,
    words: _Words,
    mean: Float[np.ndarray, "n L"],
    runs: Sequence[_Run],
) -> None:
    """Put the characters and the weights of what a batch's words look at most in their places."""
    keys, weights = largest_weights_to_store(mean, schema.TOP)
    columns = slice(layer * schema.TOP, (layer + 1) * schema.TOP)
    for n, place in enumerate(words.at):
        run = runs[words.row[n]]
        cut, offset = run.part.cut, run.part.document.start
        start, stop = cut.spans[run.window]
        token = keys[n] - cut.before + start
        inside = (keys[n] >= cut.before) & (token < stop)
        token = np.where(inside, token, 0)
        inside &= ~cut.special[token]
        for column, edge in zip(sources, (cut.starts, cut.ends), strict=False):
            column[place, columns] = np.where(inside, edge[token] + offset, -1)
        sources[2][place, columns] = weights[n]


def _rows_table(parts: Sequence[_CutPart], kept: _UnitVectors, depth: int) -> "pa.Table":
    """Make rows.parquet, not sorted yet."""
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
        "position": joined(lambda part: part.place).astype(np.int32),
        "tokens": joined(lambda part: part.units.count).astype(np.int32),
    }
    for names, numbers in ((schema.STATISTICS, kept.statistics), (schema.SOURCES, kept.sources)):
        for name, values in zip(names, () if numbers is None else numbers, strict=False):
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    wanted = schema.rows(depth, statistics=kept.statistics is not None, sources=kept.sources is not None)
    return pa.table(columns, schema=wanted)
