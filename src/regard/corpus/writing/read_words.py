"""Run the windows of a shard's documents through the model, and keep what is asked for of every word."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from regard.corpus import schema
from regard.corpus.reading.document import Document
from regard.corpus.settings import Settings
from regard.corpus.writing.attention_sums import SUMS, largest_weights_to_store, sum_layer
from regard.corpus.writing.cut_windows import CutText, Units, WindowSize, window_of_each_word
from regard.errors import RegardError
from regard.memory import give_memory_back
from regard.models.model import Model
from regard.models.states import StateBatch, count_heads, count_layers, read_states, state_width

HALF = float(np.finfo(np.float16).max)
PASSES = 8  # after so many what was freed goes back to the system: 140 MiB less at most, and no slower


@dataclass(frozen=True, eq=False)
class DocumentReader:
    """With what the documents are read: the model, the layers whose states are kept, the windows and the settings."""

    model: Model
    layers: list[int]
    size: WindowSize
    settings: Settings


@dataclass(eq=False)
class CutPart:
    """A part of a document and its words. document_window (n,): the window of the part that each is taken from. place
    (n,): its first token there."""

    document: Document
    cut: CutText
    units: Units
    document_window: Int[np.ndarray, " n"]
    place: Int[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class UnitVectors:
    """What is kept of every unit, in the order of the parts: vectors (n, K, M), statistics (4, n, N), and of the
    largest weights the keys' characters (n, N · TOP) and weights; heads (N, H, sums)."""

    vectors: Float[np.ndarray, "n K M"]
    statistics: Float[np.ndarray, "4 n N"] | None
    sources: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    heads: Float[np.ndarray, "N H sums"] | None


@dataclass(frozen=True, eq=False)
class _Run:
    """A window that is read: which part's, which of that part's windows, and the numbers of its words in the part."""

    part: int
    window: int
    words: Int[np.ndarray, " w"]


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


def read_words(reading: DocumentReader, parts: Sequence[CutPart]) -> UnitVectors:
    """Run the windows that have kept words through the model; all windows where heads are summed over everything."""
    settings = reading.settings
    firsts = np.cumsum([0, *(len(part.units) for part in parts)])
    everything = settings.statistics and settings.where is None  # also the windows without a kept word
    runs = []
    for number, part in enumerate(parts):
        order = np.argsort(part.document_window, kind="stable")
        edges = np.searchsorted(part.document_window[order], np.arange(len(part.cut.spans) + 1))
        for window in range(len(part.cut.windows)):
            mine = order[edges[window] : edges[window + 1]]
            if len(mine) or everything:
                runs.append(_Run(number, window, mine))
    windows = [parts[run.part].cut.windows[run.window] for run in runs]
    found = _empty(reading, int(firsts[-1]))
    counted = [_counted(part, reading.size.causal) for part in parts] if settings.statistics else []
    batches = read_states(reading.model, windows, reading.layers, attention=settings.statistics)
    for passes, batch in enumerate(batches, 1):
        own = [runs[n] for n in batch.numbers]
        ids = np.array([windows[n].ids for n in batch.numbers])
        _add_batch(reading, found, batch, ids, parts, own, firsts, counted)
        del batch  # the next pass runs before the name is given to what it makes
        if passes % PASSES == 0:
            give_memory_back()
    return found


def _add_batch(
    reading: DocumentReader,
    found: UnitVectors,
    batch: StateBatch,
    ids: Int[np.ndarray, "B L"],
    parts: Sequence[CutPart],
    runs: Sequence[_Run],
    firsts: Int[np.ndarray, " p"],
    counted: Sequence[np.ndarray],
) -> None:
    """Put what a batch gave in its places. runs: its windows."""
    none = [np.zeros(0, np.int64)]
    words = _Words(
        np.concatenate(none + [firsts[run.part] + run.words for run in runs]),
        np.repeat(np.arange(len(runs)), [len(run.words) for run in runs]),
        np.concatenate(none + [parts[run.part].place[run.words] for run in runs]),
        np.concatenate(none + [parts[run.part].units.count[run.words] for run in runs]),
    )
    states = words.mean(batch.states.transpose(1, 2).float().cpu().numpy())
    most = max(-float(states.min(initial=0)), float(states.max(initial=0)))
    if reading.settings.dtype == "float16" and most > HALF:
        raise RegardError(
            f"states of {reading.model.name} reach {most:.3g}, more than float16 holds: give --dtype float32"
        )
    found.vectors[words.at] = states
    if found.statistics is None or found.heads is None:
        return
    special, asks = _marks(parts, runs, counted)
    for layer, weights in enumerate(batch.maps):
        sums = sum_layer(weights, ids, special, asks, mean=found.sources is not None)
        found.heads[layer] += sums.heads
        for n, name in enumerate(schema.STATISTICS):
            mean = words.mean(getattr(sums, name))
            found.statistics[n, words.at, layer] = mean * words.count if name == "received" else mean
        if found.sources is not None and sums.mean is not None:
            _put_sources(found.sources, layer, words, words.mean(sums.mean), parts, runs)


def _empty(reading: DocumentReader, count: int) -> UnitVectors:
    """What is kept of so many words, before any was read."""
    settings, depth = reading.settings, count_layers(reading.model)
    vectors = np.zeros((count, len(reading.layers), state_width(reading.model)), settings.dtype)
    if not settings.statistics:
        return UnitVectors(vectors, None, None, None)
    sources, size = None, (count, depth * schema.TOP)
    if settings.where is not None:
        sources = np.full(size, -1), np.full(size, -1), np.zeros(size, np.float32)
    heads = np.zeros((depth, count_heads(reading.model), len(SUMS)))
    return UnitVectors(vectors, np.zeros((4, count, depth), np.float32), sources, heads)


def _counted(part: CutPart, causal: bool) -> np.ndarray:
    """The window that each token of a part counts in, as a query of the heads' sums; -1 for special ones."""
    every = np.arange(len(part.cut.ids))
    return np.where(part.cut.special, -1, window_of_each_word(every, every, part.cut.spans, causal))


def _marks(
    parts: Sequence[CutPart], runs: Sequence[_Run], counted: Sequence[np.ndarray]
) -> tuple[Bool[np.ndarray, "B L"], Bool[np.ndarray, "B L"]]:
    """Which tokens of a batch's windows are special, and which count as queries: never a window's first."""
    special, asks = [], []
    for run in runs:
        cut = parts[run.part].cut
        start, stop = cut.spans[run.window]
        around = cut.before, len(cut.windows[run.window].ids) - cut.before - (stop - start)
        special.append(np.pad(cut.special[start:stop], around, constant_values=True))
        asks.append(np.pad(counted[run.part][start:stop] == run.window, around, constant_values=False))
        asks[-1][0] = False
    return np.array(special), np.array(asks)


def _put_sources(
    sources: tuple[np.ndarray, np.ndarray, np.ndarray],
    layer: int,
    words: _Words,
    mean: Float[np.ndarray, "n L"],
    parts: Sequence[CutPart],
    runs: Sequence[_Run],
) -> None:
    """Put the characters and the weights of what a batch's words look at most in their places."""
    keys, weights = largest_weights_to_store(mean, schema.TOP)
    columns = slice(layer * schema.TOP, (layer + 1) * schema.TOP)
    for n, place in enumerate(words.at):
        run = runs[words.row[n]]
        cut, offset = parts[run.part].cut, parts[run.part].document.start
        start, stop = cut.spans[run.window]
        token = keys[n] - cut.before + start
        inside = (keys[n] >= cut.before) & (token < stop)
        token = np.where(inside, token, 0)
        inside &= ~cut.special[token]
        for column, edge in zip(sources, (cut.starts, cut.ends), strict=False):
            column[place, columns] = np.where(inside, edge[token] + offset, -1)
        sources[2][place, columns] = weights[n]
