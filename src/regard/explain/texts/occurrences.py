"""Describe a followed word's occurrences: their vectors, attention, similarity, and layer updates."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.explain.causes.layer_updates import LayerUpdate, updates_of_places
from regard.explain.vectors.neutral import not_special, state_cosines_to_reference
from regard.explain.vectors.similarity import cosine, known
from regard.explain.weights.attended import Attended, WordLink, attended, other_words
from regard.explain.weights.specific_weights import word_links
from regard.models.windows import WindowedTrace
from regard.shown import Row, Tabular, short_repr
from regard.text.words import Word, letters_of_occurrence
from regard.trace.labelled_map import vector
from regard.trace.layers import kept_numbers
from regard.trace.trace import PairTrace, Trace


@dataclass(frozen=True)
class Occurrence(Tabular):
    """One occurrence of the followed word. label: the text's label, with a letter if the word is repeated.

    hidden_states[0] enters layer 0, hidden_states[n + 1] leaves layer n. A state that a saved trace lacks is None.
    attends: per layer, mean of heads. heads: single heads. link: the most distinctive weight on another word in any
    head of the trace (`regard.explain.weights.specific_weights`), without repetitions and unknown tokens. None if no
    divergence is 0.25 nats or more.
    """

    label: str
    text: int
    word: str
    start: int
    end: int
    tokens: list[int]
    token_embeddings: list[float] | None
    hidden_states: list[list[float] | None]
    last_hidden_state: list[float]
    attends: list[Attended]
    heads: list[Attended]
    link: WordLink | None
    __repr__ = short_repr

    def as_word(self) -> Word:
        """Return this occurrence of the followed word as the `Word` of its trace."""
        return Word(self.word, self.start, self.end, tuple(self.tokens))

    def cosines_to_start(self) -> list[float | None]:
        """Return each state's cosine to the state that enters layer 0, None for a missing state or another width."""
        first, *_ = states = [torch.tensor(state or (), dtype=torch.float64) for state in self.hidden_states]
        return [cosine(first, state) if len(state) == len(first) > 0 else None for state in states]

    def cosines_to_state_before(self) -> list[float]:
        """Return each state's cosine to the previous state, up to the last hidden state. Needs all states."""
        states = [*filter(None, self.hidden_states[:-1]), self.last_hidden_state]
        return [cosine(*pair) for pair in pairwise(torch.tensor(states, dtype=torch.float64))]

    def rows(self) -> list[Row]:
        """Return one row per layer (or head) and attended token, with the token's weight.

        head: None for the mean of heads. kind: "special" for all special tokens together, "sink" for an attention sink,
        "token" for the largest other weights.
        """
        rows: list[Row] = []
        for row in (*self.attends, *self.heads):
            common: Row = {"occurrence": self.label, "word": self.word, "layer": row.layer, "head": row.head}
            for kind, shares in (("token", row.top), ("sink", row.sinks)):
                rows += [common | {"kind": kind} | asdict(share) for share in shares]
            rows.append(common | {"kind": "special", "token": None, "text": None, "weight": row.special})
        return rows


@dataclass(frozen=True)
class OccurrencePair:
    """Cosines between two occurrences' token embeddings, and between their states, as in `Occurrence`."""

    a: str
    b: str
    token_embeddings_equal: bool | None
    token_embeddings: float | None
    hidden_states: list[float | None]

    @property
    def end(self) -> float | None:
        """Return the cosine of the last hidden states, None if it is unknown or NaN."""
        return known(self.hidden_states[-1]) if self.hidden_states else None

    def largest_drop(self) -> tuple[float, int]:
        """Return the largest drop of the cosine over one layer, and this layer."""
        states = enumerate(pairwise(map(known, self.hidden_states)))
        drops = [(a - b, layer) for layer, (a, b) in states if a is not None and b is not None]
        return max(drops, key=lambda drop: drop[0], default=(0.0, 0))


@dataclass(frozen=True)
class ComparedWord:
    """A reference word's cosines to one occurrence, of token embeddings, last hidden states and all states.

    The reference word is a separate text. The cosines `token_embeddings` and `last_hidden_state` are in different
    spaces, so their difference means nothing. `states[n]` compares states n of both, as in `Neutral`. The last is
    `last_hidden_state`.
    """

    word: str
    occurrence: str
    token_embeddings: float | None
    last_hidden_state: float
    states: list[float | None]


Found = Sequence[tuple[int, Sequence[Word]]]  # each text's number and the words found in it


def find_word_in_texts(traces: Sequence[Trace | WindowedTrace], word: str) -> Found:
    """Find the occurrences of a word in each text. Raise a RegardError that names a text without the word."""
    words = []
    for number, trace in enumerate(traces):
        try:
            words.append((number, trace.word(word)))
        except RegardError as error:
            raise RegardError(f"text {number + 1}: {error}" if len(traces) > 1 else str(error)) from None
    return words


@dataclass(frozen=True)
class ShownWindow:
    """The origin of a shown text: window number `window` of text `text`, with this text's tokens [start, stop).

    windows: the number of that text's windows.
    """

    text: int
    window: int
    windows: int
    start: int
    stop: int


@dataclass(frozen=True)
class Unfolded:
    """Windows as separate texts: their traces, their origins, and the followed word's occurrences in each.

    Each occurrence belongs to the window in which it is furthest from an edge. If a word is followed, windows without
    an occurrence are left out.
    """

    traces: list[Trace]
    windows: list[ShownWindow]
    found: list[tuple[int, list[Word]]]


def unfold_texts_to_windows(texts: Sequence[WindowedTrace], word: str | None) -> Unfolded:
    """Split long texts into windows, each with its occurrences of the followed word, if any."""
    unfolded = Unfolded([], [], [])
    in_texts: Found = [(n, []) for n in range(len(texts))] if word is None else find_word_in_texts(texts, word)
    for (number, words), text in zip(in_texts, texts, strict=True):
        located = [(text.window_of(occurrence), text.locate(occurrence)[1]) for occurrence in words]
        for n, trace in enumerate(text.windows):
            inside = [occurrence for window, occurrence in located if window == n]
            if word is None or inside:
                unfolded.found.append((len(unfolded.traces), inside))
                unfolded.traces.append(trace)
                unfolded.windows.append(ShownWindow(number, n, len(text.windows), *text.spans[n]))
    return unfolded


def occurrences(
    traces: Sequence[Trace], found: Found, labels: Sequence[str], layer: int | None, head: int | None, top: int,
    sinks: Sequence[Collection[int]] = (),
) -> list[Occurrence]:  # fmt: skip
    """Describe each occurrence found, with single heads if a layer or head is requested."""
    occurrences = []
    for number, words in found:
        trace, left_out = traces[number], sinks[number] if sinks else ()
        states, kept, embeddings = trace.hidden_states, kept_numbers(trace.hidden_states), trace.token_embeddings
        links = word_links(trace, [word.tokens for word in words], left_out)
        attends: list[list[Attended]] = []  # [layer or head][word]
        heads: list[list[Attended]] = []
        queries = sorted({token for word in words for token in word.tokens})
        places = [[queries.index(token) for token in word.tokens] for word in words]
        for n in kept_numbers(trace.attention):
            weights = trace.attention[n][:, queries]
            rows = torch.stack([weights[:, at].mean(1) for at in places])  # (words, H, S)
            attends.append(attended(rows.mean(1), trace.tokens, n, None, top, left_out))
            if (layer, head) != (None, None) and layer in (None, n):
                selected = [h for h in range(rows.shape[1]) if head in (None, h)]
                heads += [attended(rows[:, h], trace.tokens, n, h, top, left_out) for h in selected]
        for nth, (word, link) in enumerate(zip(words, links, strict=True)):
            occurrences.append(Occurrence(
                label=occurrence_label_in_text(labels[number], nth, len(words)), text=number, word=word.text,
                start=word.start, end=word.end, tokens=list(word.tokens),
                token_embeddings=None if embeddings is None else vector(embeddings, word).tolist(),
                hidden_states=[vector(states[n], word).tolist() if n in kept else None for n in range(len(states))],
                last_hidden_state=vector(trace.last_hidden_state, word).tolist(),
                attends=[of_words[nth] for of_words in attends], heads=[of_words[nth] for of_words in heads], link=link,
            ))  # fmt: skip
    return occurrences


def occurrence_label_in_text(text: str, nth: int, count: int) -> str:
    """Label occurrence nth (from 0) of count in a text: the text's label, with a letter if count is above 1."""
    return f"{text}{letters_of_occurrence(nth) if count > 1 else ''}"


def compare_occurrences(occurrences: Sequence[Occurrence], traces: Sequence[Trace]) -> list[OccurrencePair]:
    """Compare every two occurrences, state by state, up to the last hidden state."""
    embeddings, vectors = [], []  # per occurrence: token embeddings; vectors with lengths
    for occurrence, trace in zip(occurrences, traces, strict=True):
        kept, learned = kept_numbers(trace.hidden_states), trace.token_embeddings
        embeddings.append(None if learned is None else learned[occurrence.tokens])
        states = [trace.hidden_states[n] if n in kept else None for n in range(len(trace.hidden_states) - 1)]
        means = [
            None if rows is None else rows[occurrence.tokens].mean(0).double()
            for rows in (learned, *states, trace.last_hidden_state)
        ]
        vectors.append([None if mean is None else (mean, float(mean.norm())) for mean in means])
    pairs = []
    for (a, rows_a, of_a), (b, rows_b, of_b) in combinations(zip(occurrences, embeddings, vectors, strict=True), 2):
        cosines = [
            None if x is None or y is None else float(torch.dot(x[0], y[0]) / (x[1] * y[1]))
            for x, y in zip(of_a, of_b, strict=True)
        ]
        equal = None if rows_a is None or rows_b is None else torch.equal(rows_a, rows_b)
        pairs.append(OccurrencePair(a.label, b.label, equal, cosines[0], cosines[1:]))
    return pairs


def compare_reference(reference: Trace, occurrence: Occurrence, trace: Trace) -> ComparedWord:
    """Compare the vectors of a reference word (means over its tokens) with those of an occurrence."""
    tokens, learned = not_special(reference), None
    if reference.token_embeddings is not None and trace.token_embeddings is not None:
        learned = cosine(reference.token_embeddings[tokens].mean(0), trace.token_embeddings[occurrence.tokens].mean(0))
    states = state_cosines_to_reference(trace, occurrence.as_word(), reference)
    assert states[-1] is not None
    return ComparedWord(reference.text, occurrence.label, learned, states[-1], states)


@dataclass(frozen=True)
class Brought:
    """A token of another word, and the share of one layer's update that attention brought from it."""

    layer: int
    token: int
    text: str
    share: float


@dataclass(frozen=True)
class WordUpdates:
    """An occurrence's layer updates, or the reason why they can't be split exactly.

    most: the largest share of another word of the text in any update, without special tokens and sinks. None if no
    share is positive.
    """

    occurrence: str
    updates: list[LayerUpdate] | None
    refused: str | None
    most: Brought | None = None


def word_updates(
    trace: Trace | PairTrace, occurrences: Sequence[Occurrence], top: int, sinks: Collection[int] = ()
) -> list[WordUpdates]:
    """Split each layer's update of the occurrences in one text.

    top: how many source tokens to name. sinks: numbers of tokens that are attention sinks.
    """
    if not occurrences:
        return []
    try:
        layers = updates_of_places(trace, [occurrence.tokens for occurrence in occurrences], top)
    except RegardError as error:
        if len(occurrences) == 1:
            return [WordUpdates(occurrences[0].label, None, str(error))]
        return [words for occurrence in occurrences for words in word_updates(trace, [occurrence], top, sinks)]
    tokens = trace.sides[-1].tokens
    counted = torch.zeros(len(occurrences), len(tokens), dtype=torch.bool)
    counted[:, other_words(tokens, (), sinks)] = True
    brought: list[list[Brought]] = []
    for row, occurrence in zip(counted, occurrences, strict=True):
        row[occurrence.tokens] = False
        brought.append([])
    for updates, shares in layers:
        largest = [] if shares is None else zip(*map(Tensor.tolist, (shares * counted).max(1)), strict=True)
        for n, (share, token) in enumerate(largest):
            if share > 0:
                brought[n].append(Brought(updates[n].layer, token, tokens[token].text, share))
    largest_of = [max(tokens, key=lambda token: token.share, default=None) for tokens in brought]
    return [
        WordUpdates(occurrence.label, [updates[n] for updates, _ in layers], None, largest)
        for n, (occurrence, largest) in enumerate(zip(occurrences, largest_of, strict=True))
    ]
