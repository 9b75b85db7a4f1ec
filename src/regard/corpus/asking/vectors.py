"""Embed words in new texts, and compute cosines, nearest rows and principal axes of stored vectors.

A place is a word in the text of a query, or an occurrence that is embedded again. The embedding from layer n is that
layer's output. For the last layer, it is the contextual embedding, after the final norm if the model has one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from regard.corpus.asking.occurrences import COLUMNS, Occurrences, in_store_order
from regard.corpus.settings import Settings
from regard.corpus.store_tables import StoreTables
from regard.corpus.writing.cut_windows import WindowSize, cut_texts, window_tokens
from regard.errors import RegardError
from regard.models.model import Model
from regard.text.tokens import encode_all, shortened
from regard.text.words import Word
from regard.trace.trace import Trace

BLOCK = 1024  # rows, 1.5 MB at width 384 in float32. Blocks 64 times larger took three times as long


def unit(vectors: Float[np.ndarray, "... M"]) -> Float[np.ndarray, "... M"]:
    """Scale vectors to length 1, in float32. A zero vector stays zero."""
    vectors = vectors.astype(np.float32)
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)


def cosines(vectors: Float[np.ndarray, "n M"], query: Float[np.ndarray, " M"]) -> Float[np.ndarray, " n"]:
    """Return the cosine of each vector with the query vector, in float32. A zero vector has cosine 0."""
    direction = torch.from_numpy(query.astype(np.float32))
    direction = direction / direction.norm().clamp_min(torch.finfo(torch.float32).tiny)
    result = torch.empty(len(vectors))
    block = torch.empty(min(BLOCK, len(vectors)), vectors.shape[1])
    for first in range(0, len(vectors), BLOCK):
        rows = block[: min(BLOCK, len(vectors) - first)]
        rows.copy_(torch.from_numpy(vectors[first : first + len(rows)]))
        lengths = torch.linalg.vector_norm(rows, dim=1).clamp_min(torch.finfo(torch.float32).tiny)
        torch.div(torch.mv(rows, direction), lengths, out=result[first : first + len(rows)])
    return result.numpy()


def largest(scores: Float[np.ndarray, " n"], top: int) -> np.ndarray:
    """Return the indices of the `top` largest scores in descending order. Equal scores keep their order."""
    if top < len(scores):
        edge = np.partition(scores, len(scores) - top)[len(scores) - top] if top else np.inf
        candidates = np.flatnonzero(scores >= edge)
    else:
        candidates = np.arange(len(scores))
    return candidates[np.argsort(-scores[candidates], kind="stable")][:top]


def principal_axes(
    vectors: Float[np.ndarray, "n M"], count: int
) -> tuple[Float[np.ndarray, "n count"], tuple[float, ...]]:
    """Project unit vectors on their first principal axes. Return coordinates and explained variance.

    The axes (Pearson 1901) are eigenvectors of the M × M covariance matrix. The largest component of each axis is made
    positive, so that plots don't flip. Explained variances are fractions of the total.
    """
    points = unit(vectors).astype(np.float64)
    points -= points.mean(0)
    values, axes = np.linalg.eigh(points.T @ points)
    axes = axes[:, ::-1][:, :count]
    axes = axes * np.where(np.take_along_axis(axes, np.abs(axes).argmax(0)[None], 0) < 0, -1, 1)
    total = max(float(values.sum()), np.finfo(np.float64).tiny)
    return points @ axes, tuple(float(max(value, 0) / total) for value in values[::-1][:count])


def find_nearest_rows(
    tables: StoreTables, query: Float[np.ndarray, " M"], top: int, layer: int | None = None
) -> tuple[Occurrences, Float[np.ndarray, " n"]]:
    """Return the `top` occurrences with the vectors nearest to a query, in index order, and their cosines."""
    best: list[tuple[float, str, int]] = []
    for shard, first, vectors in tables.all_vectors(layer):
        scores = cosines(vectors, query)
        best += [(float(scores[n]), shard, first + int(n)) for n in largest(scores, top)]
        best = sorted(best, key=lambda item: -item[0])[:top]
    if not best:
        raise RegardError(f"embedding index {str(tables.path)!r} has no rows")
    rows_by_shard: dict[str, list[int]] = {}
    for _, shard, row in best:
        rows_by_shard.setdefault(shard, []).append(row)
    occurrences = in_store_order(tables, tables.rows_at(rows_by_shard, COLUMNS))
    score = {(shard, row): value for value, shard, row in best}
    similarity = [score[shard, row] for shard, row in zip(occurrences.shard, occurrences.row.tolist(), strict=True)]
    return occurrences, np.array(similarity, dtype=np.float32)


AT_ONCE = 32  # texts traced together
BLANK = re.compile(r"\s+")


@dataclass(frozen=True)
class WordSpan:
    """A word at the characters [start, end) of a text."""

    text: str
    start: int
    end: int

    @property
    def form(self) -> str:
        """Return the word as it is written in the text."""
        return self.text[self.start : self.end]


def embed_spans(model: Model, spans: Sequence[WordSpan], layers: Sequence[int]) -> Float[np.ndarray, "spans layers M"]:
    """Embed words in their texts. An embedding is the mean of a layer's states over the word's tokens."""
    if model.pairs:
        raise RegardError(f"{model.name} is an encoder-decoder: needs a model that reads a single text")
    embeddings = []
    for first in range(0, len(spans), AT_ONCE):
        batch = spans[first : first + AT_ONCE]
        texts = list(dict.fromkeys(span.text for span in batch))
        traces = model.trace(texts, layers=sorted(set(layers)), logits=False, attention_outputs=False)
        by_text = dict(zip(texts, traces, strict=True))
        for span in batch:
            trace = by_text[span.text]
            tokens = list(word_tokens(trace, span).tokens)
            rows = np.stack([layer_states_as_array(trace, layer)[tokens] for layer in layers])
            embeddings.append(rows.mean(1))
    return np.stack(embeddings)


def word_tokens(trace: Trace, span: WordSpan) -> Word:
    """Return a span's word with its tokens in a trace. Raises RegardError if it has no token."""
    word = word_tokens_or_none(trace, span)
    if word is None:
        raise RegardError(f"word {span.form!r} of {shortened(span.text)} reached no token: the tokenizer drops it")
    return word


def word_tokens_or_none(trace: Trace, span: WordSpan) -> Word | None:
    """Return a span's word with its tokens in a trace, None if it has no token."""
    tokens = tuple(n for n, t in enumerate(trace.tokens) if t.start < span.end and t.end > span.start)
    return Word(span.form, span.start, span.end, tokens) if tokens else None


def layer_states_as_array(trace: Trace, layer: int) -> Float[np.ndarray, "L M"]:
    """Return a layer's output as a float32 array. For the last layer, these are the contextual embeddings."""
    states = trace.hidden_states
    last = len(states) - 2  # the first state is the first layer's input
    return (trace.last_hidden_state if layer == last else states[layer + 1]).detach().float().cpu().numpy()


@dataclass(frozen=True)
class Passage:
    """A window of text with an occurrence at its characters [start, end).

    document: the document's id. first: the position of the window's first character in the document. same: whether the
    window has the same tokens as when the index was made.
    """

    text: str
    start: int
    end: int
    document: str
    first: int
    same: bool


def read_passage(model: Model, stored: Occurrences) -> Passage:
    """Return the window of text in which a single occurrence was embedded. model: the index's model.

    If the window's text alone is tokenized differently, the passage has as many whole words as fit.
    """
    if len(stored) != 1:
        raise RegardError(f"passage: got {len(stored)} occurrences, expected one")
    shard, row, number = stored.shard[0], int(stored.row[0]), int(stored.part[0])
    part = stored.texts()[shard, number]
    start, end = int(stored.start[0]) - part.start, int(stored.end[0]) - part.start
    settings = stored.tables.manifest.settings
    size = WindowSize(
        *window_tokens(model, Settings(window=settings.get("window"), stride=settings.get("stride"))), False
    )
    [cut] = cut_texts(model, [part.text], size)
    window = int(stored.tables.rows_at({shard: [row]}, ["window"]).numbers("window")[0])
    if cut is None or not 0 <= window < len(cut.windows):
        raise RegardError(f"shard {shard}: row {row} is of window {window}, which its text lacks: other settings")

    def ids(first: int, last: int) -> list[int]:
        return encode_all(model.tokenizer, [part.text[first:last]])[0].ids

    def passage(first: int, last: int, same: bool) -> Passage:
        return Passage(part.text[first:last], start - first, end - first, stored.document[0], part.start + first, same)

    if len(cut.windows) == 1:
        return passage(0, len(part.text), True)
    span = slice(*cut.spans[window])
    first, last = int(cut.starts[span].min()), int(cut.ends[span].max())
    if not first <= start < end <= last:
        raise RegardError(f"shard {shard}: row {row} is outside its window {window}: other settings, or another text")
    if ids(first, last) == cut.windows[window].ids:
        return passage(first, last, True)
    if first > 0 and not part.text[first - 1].isspace():
        first = _passage_word_begin(part.text, first, start)
    if last < len(part.text) and not part.text[last].isspace():
        last = _passage_word_end(part.text, end, last)
    while len(ids(first, last)) > size.window:  # the first word may have more tokens without the word before it
        before = (first, last)
        if start - first > last - end:
            first = _passage_word_begin(part.text, first, start)
        else:
            last = _passage_word_end(part.text, end, last)
        if (first, last) == before:
            raise RegardError(f"passage: no text around the word has {size.window} tokens or fewer")
    return passage(first, last, False)


def _passage_word_begin(text: str, first: int, last: int) -> int:
    """Return the start of the next word after a blank, or `last` if there is no blank before that position."""
    match = BLANK.search(text, first, last)
    return match.end() if match else last


def _passage_word_end(text: str, first: int, last: int) -> int:
    """Return the end of the last whole word before `last`, or `first` if there is no blank."""
    blanks = list(BLANK.finditer(text, first, last))
    return blanks[-1].start() if blanks else first
