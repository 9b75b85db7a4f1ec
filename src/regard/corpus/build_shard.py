"""Read the documents of one shard with a model, and make the tables that are written for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from regard.attention.attention_map import AttentionMap
from regard.corpus import schema
from regard.corpus.attention_sums import SUMS, LayerSums, largest, sum_layer
from regard.corpus.cut_windows import CutText, WindowSize, cut_texts, owners
from regard.corpus.document import Document
from regard.corpus.settings import Settings
from regard.corpus.shard import ShardTables, sort_rows
from regard.corpus.words import Units, find_tokens, find_words
from regard.errors import RegardError
from regard.models.model import Model
from regard.models.states import Window, count_layers, read_states

if TYPE_CHECKING:
    import pyarrow as pa

HALF = float(np.finfo(np.float16).max)


@dataclass(frozen=True, eq=False)
class Reading:
    """With what the documents are read: the model, the layers whose states are kept, the windows and the settings."""

    model: Model
    layers: list[int]
    size: WindowSize
    settings: Settings


@dataclass(eq=False)
class _Part:
    """A part of a document and its words: window_of (n,) numbers those of the whole shard, place (n,) is the first
    token in its window; document_window (n,) counts the windows of the part."""

    document: Document
    cut: CutText
    units: Units
    document_window: Int[np.ndarray, " n"]
    place: Int[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class _Found:
    """What is kept of every unit, in the order of the parts: vectors (n, K, M), statistics (4, n, N), and of the
    largest weights the keys' characters (n, N · TOP) and weights; heads (N, H, sums)."""

    vectors: Float[np.ndarray, "n K M"]
    statistics: Float[np.ndarray, "4 n N"] | None
    sources: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    heads: Float[np.ndarray, "N H sums"] | None


def build_shard(reading: Reading, documents: Sequence[Document]) -> ShardTables:
    """Read documents and make the tables of their shard; the same documents give the same tables.

    Raises:
        RegardError: the model cannot be read so, or its states do not fit the dtype.
    """
    settings = reading.settings
    parts: list[_Part] = []
    spans: list[tuple[str, int, int, str, str]] = []
    texts = [each.text for each in documents]
    cuts = cut_texts(reading.model, texts, reading.size)
    part_rows = []
    for row, (document, cut) in enumerate(zip(documents, cuts, strict=True)):
        if cut is None:
            spans.append(_span(document, 0, len(document.text), "dropped"))
            continue
        spans += _unread(document, cut)
        part, split = _part(document, cut, reading)
        spans += [_span(document, start, end, kind) for start, end, kind in split]
        parts.append(part)
        part_rows.append(row)
    found = _read(reading, parts)
    rows = _rows(parts, part_rows, found, count_layers(reading.model))
    rows, vectors = sort_rows(rows, found.vectors)
    heads = None if found.heads is None or not settings.statistics else _heads(found.heads)
    return ShardTables(_texts(documents), rows, vectors, _spans(spans), heads, sum(len(p.cut.ids) for p in parts))


def _part(document: Document, cut: CutText, reading: Reading) -> tuple[_Part, list[tuple[int, int, str]]]:
    """The words of a part that are kept; and those that are not read whole, with their characters and why."""
    settings = reading.settings
    tokens = np.flatnonzero(~cut.special & (cut.ends > cut.starts))
    starts, ends = cut.starts[tokens], cut.ends[tokens]
    if settings.unit == "words":
        units, missed = find_words(document.text, starts, ends, tokens, settings.where, settings.lemma)
    else:
        units, missed = find_tokens(document.text, starts, ends, tokens), []
    window = owners(units.first, units.first + units.count - 1, cut.spans, reading.size.causal)
    long = [(int(units.start[n]), int(units.end[n]), "long") for n in np.flatnonzero(window < 0)]
    kept = np.flatnonzero(window >= 0)
    units, window = units.take(kept), window[kept]
    firsts = np.array([start for start, _ in cut.spans])
    place = units.first - firsts[window] + cut.before
    return _Part(document, cut, units, window, place), long + [(a, b, "dropped") for a, b in missed]


def _read(reading: Reading, parts: Sequence[_Part]) -> _Found:
    """Run the windows that have kept words through the model, and keep what is asked for of each word."""
    settings, model = reading.settings, reading.model
    firsts = np.cumsum([0, *(len(part.units) for part in parts)])
    windows: list[Window] = []
    held: list[tuple[int, int, np.ndarray]] = []  # (part, window of the part, numbers of its units in the part)
    for number, part in enumerate(parts):
        order = np.argsort(part.document_window, kind="stable")
        edges = np.searchsorted(part.document_window[order], np.arange(len(part.cut.spans) + 1))
        for n, window in enumerate(part.cut.windows):
            mine = order[edges[n] : edges[n + 1]]
            if len(mine) or (settings.statistics and settings.where is None):
                windows.append(window)
                held.append((number, n, mine))
    counted = [_counted(part, reading.size.causal) for part in parts] if settings.statistics else []
    count, depth = int(firsts[-1]), count_layers(model)
    width = model.model.get_input_embeddings().weight.shape[1] if count == 0 else 0
    vectors: np.ndarray | None = None
    statistics = np.zeros((4, count, depth), np.float32) if settings.statistics else None
    sources = None
    if settings.statistics and settings.where is not None:
        size = (count, depth * schema.TOP)
        sources = np.full(size, -1), np.full(size, -1), np.zeros(size, np.float32)
    heads: np.ndarray | None = None
    for batch in read_states(model, windows, reading.layers, attention=settings.statistics):
        states = batch.states.float().cpu().numpy()  # (B, K, L, M)
        if vectors is None:
            vectors = np.zeros((count, states.shape[1], states.shape[3]), settings.dtype)
        rows = np.concatenate([np.full(len(held[n][2]), b) for b, n in enumerate(batch.numbers)]).astype(int)
        at = np.concatenate([firsts[held[n][0]] + held[n][2] for n in batch.numbers]).astype(int)
        place = np.concatenate([parts[held[n][0]].place[held[n][2]] for n in batch.numbers]).astype(int)
        tokens = np.concatenate([parts[held[n][0]].units.count[held[n][2]] for n in batch.numbers]).astype(int)
        _put(vectors, at, _mean(states.transpose(0, 2, 1, 3), rows, place, tokens), settings.dtype, model.name)
        if statistics is None:
            continue
        ids = np.array([windows[n].ids for n in batch.numbers])
        special, asks = _of_windows(parts, held, counted, batch.numbers)
        for layer, weights in enumerate(batch.maps):
            sums = sum_layer(weights, ids, special, asks, mean=sources is not None)
            heads = _added(heads, layer, depth, sums, weights)
            for n, name in enumerate(schema.STATISTICS):
                each = getattr(sums, name)[..., None]
                total = _mean(each, rows, place, tokens)[:, 0]
                statistics[n, at, layer] = total * tokens if name == "received" else total
            if sources is not None and sums.mean is not None:
                _put_sources(sources, layer, at, _mean(sums.mean, rows, place, tokens), parts, held, batch.numbers, rows)
    if vectors is None:
        vectors = np.zeros((count, len(reading.layers), width), settings.dtype)
    if settings.statistics and heads is None:
        heads = np.zeros((depth, 0, len(SUMS)))
    return _Found(vectors, statistics, sources, heads)


def _counted(part: _Part, causal: bool) -> np.ndarray:
    """The window that each token of a part counts in, as a query of the heads' sums; -1 for special ones."""
    every = np.arange(len(part.cut.ids))
    return np.where(part.cut.special, -1, owners(every, every, part.cut.spans, causal))


def _of_windows(
    parts: Sequence[_Part],
    held: Sequence[tuple[int, int, np.ndarray]],
    counted: Sequence[np.ndarray],
    numbers: Sequence[int],
) -> tuple[np.ndarray, np.ndarray]:
    """Which tokens of some windows are special, and which count as queries, (B, L) each."""
    special, asks = [], []
    for number in numbers:
        part, n, _ = held[number]
        cut = parts[part].cut
        start, stop = cut.spans[n]
        after = len(cut.windows[n].ids) - cut.before - (stop - start)
        special.append(np.concatenate([np.ones(cut.before, bool), cut.special[start:stop], np.ones(after, bool)]))
        own = np.concatenate([np.zeros(cut.before, bool), counted[part][start:stop] == n, np.zeros(after, bool)])
        own[0] = False
        asks.append(own)
    return np.array(special), np.array(asks)


def _mean(
    states: Float[np.ndarray, "B L *M"],
    rows: Int[np.ndarray, " n"],
    place: Int[np.ndarray, " n"],
    tokens: Int[np.ndarray, " n"],
) -> Float[np.ndarray, "n *M"]:
    """The mean over the tokens [place, place + tokens) of some rows."""
    total = states[rows, place].astype(np.float32)
    for more in range(1, int(tokens.max(initial=1))):
        has = tokens > more
        total[has] += states[rows[has], place[has] + more]
    return total / tokens.reshape(-1, *[1] * (total.ndim - 1))


def _put(vectors: np.ndarray, at: np.ndarray, found: np.ndarray, dtype: str, name: str) -> None:
    """Put vectors in their places, in the dtype that is kept."""
    if dtype == "float16" and found.size and float(np.abs(found).max()) > HALF:
        raise RegardError(f"states of {name} reach {np.abs(found).max():.3g}, more than float16 holds: --dtype float32")
    vectors[at] = found


def _put_sources(
    sources: tuple[np.ndarray, np.ndarray, np.ndarray],
    layer: int,
    at: np.ndarray,
    mean: Float[np.ndarray, "n L"],
    parts: Sequence[_Part],
    held: Sequence[tuple[int, int, np.ndarray]],
    numbers: Sequence[int],
    rows: np.ndarray,
) -> None:
    """Put the characters and the weights of what some words look at most."""
    keys, weights = largest(mean, schema.TOP)
    columns = slice(layer * schema.TOP, (layer + 1) * schema.TOP)
    for row, unit in enumerate(at):
        number, n, _ = held[numbers[rows[row]]]
        cut, offset = parts[number].cut, parts[number].document.start
        start, stop = cut.spans[n]
        token = keys[row] - cut.before + start
        inside = (keys[row] >= cut.before) & (token < stop)
        token = np.where(inside, token, 0)
        inside &= ~cut.special[token]
        for column, edge in zip(sources, (cut.starts, cut.ends), strict=False):
            column[unit, columns] = np.where(inside, edge[token] + offset, -1)
        sources[2][unit, columns] = weights[row]


def _added(heads: np.ndarray | None, layer: int, depth: int, sums: LayerSums, weights: AttentionMap) -> np.ndarray:
    """The sums of all layers' heads, with one batch's of one layer added."""
    if heads is None:
        heads = np.zeros((depth, weights.shape[1], len(SUMS)))
    heads[layer, : len(sums.heads)] += sums.heads
    return heads


def _unread(document: Document, cut: CutText) -> list[tuple[str, int, int, str, str]]:
    """The characters of a part that the model does not read as they stand."""
    found, at = [], 0
    unknown = {token.id for token in cut.encoded.tokens if token.text in cut.encoded.unknown}
    unknown_texts = set(cut.encoded.unknown)
    for token in sorted(cut.encoded.tokens, key=lambda each: (each.start, each.end)):
        if token.start > at and document.text[at : token.start].strip():
            found.append(_span(document, at, token.start, "dropped"))
        at = max(at, token.end)
        if token.special and token.end > token.start:
            found.append(_span(document, token.start, token.end, "special"))
        elif unknown_texts and (document.text[token.start : token.end] in unknown_texts) and _unknown(token, unknown):
            found.append(_span(document, token.start, token.end, "unknown"))
    if document.text[at:].strip():
        found.append(_span(document, at, len(document.text), "dropped"))
    return found


def _unknown(token: Any, unknown: set[int]) -> bool:
    return token.id in unknown or not unknown


def _span(document: Document, start: int, end: int, kind: str) -> tuple[str, int, int, str, str]:
    """A row of spans.parquet, without the blanks around it."""
    text = document.text[start:end]
    start += len(text) - len(text.lstrip())
    end -= len(text) - len(text.rstrip())
    return document.id, document.start + start, document.start + end, kind, document.text[start:end]


def _texts(documents: Sequence[Document]) -> "pa.Table":
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


def _spans(spans: Sequence[tuple[str, int, int, str, str]]) -> "pa.Table":
    import pyarrow as pa

    names = schema.spans().names
    columns = dict(zip(names, zip(*spans, strict=True), strict=True)) if spans else {name: [] for name in names}
    return pa.table({name: list(column) for name, column in columns.items()}, schema=schema.spans())


def _heads(heads: Float[np.ndarray, "N H sums"]) -> "pa.Table":
    import pyarrow as pa

    layer, head = (each.ravel().astype(np.int32) for each in np.indices(heads.shape[:2]))
    sums = {name: heads[..., n].ravel() for n, name in enumerate(SUMS)}
    return pa.table({"layer": layer, "head": head} | sums, schema=schema.heads(SUMS))


def _rows(parts: Sequence[_Part], part_rows: Sequence[int], found: _Found, depth: int) -> "pa.Table":
    import pyarrow as pa

    def joined(each: Any) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *(each(part) for part in parts)])

    forms = [part.document.text[a:b] for part in parts for a, b in zip(part.units.start, part.units.end, strict=True)]
    counts = [len(part.units) for part in parts]
    columns: dict[str, Any] = {
        "word": [word for part in parts for word in part.units.words],
        "form": forms,
        "lemma": [lemma for part in parts for lemma in (part.units.lemmas or [None] * len(part.units))],
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
