"""What attention does to a word, or to every token: all that `regard see` shows, as plain numbers.

Everything here is made of dataclasses of strings, integers, floats and lists, so that the terminal, the pictures and
`--json` show the very same thing. Layers and heads count from 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.explain.movement import Movement, movement
from regard.explain.similarity import cosine
from regard.tokens import Token, Word
from regard.trace import Status, Trace, gives, special_share, vector


@dataclass(frozen=True)
class Share:
    """A token that attention goes to, and how much of it: weight is a part of 1."""

    token: int
    text: str
    weight: float


@dataclass(frozen=True)
class Attended:
    """Where attention goes in one layer, from one token or word: of one head, or (head None) the mean of all heads.

    special: what all special tokens take together. top: the largest others. weights: one for every token, None in
    an overview.
    """

    layer: int
    head: int | None
    special: float
    top: list[Share]
    weights: list[float] | None


@dataclass(frozen=True)
class Occurrence:
    """One occurrence of the word. label names it in tables: the text's number, with a letter where it is repeated.

    states[0] enters layer 0, states[n + 1] leaves layer n. attends: per layer, mean of heads. heads: single heads.
    """

    label: str
    text: int
    word: str
    start: int
    end: int
    tokens: list[int]
    learned: list[float] | None
    states: list[list[float]]
    contextual: list[float]
    attends: list[Attended]
    heads: list[Attended]

    def as_word(self) -> Word:
        """The word itself, as a trace knows it."""
        return Word(self.word, self.start, self.end, tuple(self.tokens))


@dataclass(frozen=True)
class Pair:
    """Two occurrences compared: cosines of their learned embeddings and of every state, as in Occurrence."""

    a: str
    b: str
    learned_equal: bool | None
    learned: float | None
    states: list[float]


@dataclass(frozen=True)
class Reference:
    """A reference word beside one occurrence: cosine of learned embeddings, and of contextual ones.

    The reference's contextual embedding is its own as a text of its own.
    """

    word: str
    occurrence: str
    learned: float | None
    contextual: float


@dataclass(frozen=True)
class Sight:
    """All that is shown of some texts.

    overview[t][i]: per layer, where token i of text t sends its attention; empty where a word is followed. movement:
    the occurrences' paths on a plane, in their order; None where no word is followed.
    """

    word: str | None
    top: int
    texts: list[str]
    tokens: list[list[Token]]
    occurrences: list[Occurrence]
    pairs: list[Pair]
    references: list[Reference]
    overview: list[list[list[Attended]]]
    movement: Movement | None
    statuses: list[Status]
    reference_statuses: list[Status]


def see(
    traces: Sequence[Trace],
    word: str | None = None,
    *,
    references: Sequence[Trace] = (),
    layer: int | None = None,
    head: int | None = None,
    top: int = 5,
) -> Sight:
    """Look at texts: at one word in them, or without a word at every token.

    references: traces of reference words, each a text of its own. layer, head: single heads to show beside the mean of
    heads: one head of one layer, all heads of a layer, or one head of every layer. top: how many tokens to name.

    Raises:
        RegardError: the word is not in one of the texts, or layer or head is out of range; the range is named.
    """
    check_heads(traces[0], layer, head)
    occurrences = [] if word is None else _occurrences(traces, word, layer, head, top)
    vectors = {o.label: (o, traces[o.text]) for o in occurrences}
    words = [(traces[o.text], o.as_word()) for o in occurrences]
    return Sight(
        word=word,
        top=top,
        texts=[trace.text for trace in traces],
        tokens=[list(trace.tokens) for trace in traces],
        occurrences=occurrences,
        pairs=[_pair(*a, *b) for a, b in combinations(vectors.values(), 2)],
        references=[_reference(r, *v) for r in references for v in vectors.values()],
        overview=[] if word is not None else [_overview(trace, head, top) for trace in traces],
        movement=movement(words, traces, references) if words else None,
        statuses=[trace.status for trace in traces],
        reference_statuses=[trace.status for trace in references],
    )


def check_heads(trace: Trace, layer: int | None, head: int | None) -> None:
    """Refuse a layer or head that the model does not have; the range is named."""
    layers, heads = len(trace.attention), trace.attention[0].shape[0]
    for name, given, count in (("layer", layer, layers), ("head", head, heads)):
        if given is not None and not 0 <= given < count:
            raise RegardError(f"{name} {given} is out of range: {trace.status.model} has {name}s 0 to {count - 1}")


def attended(weights: Float[Tensor, " S"], tokens: Sequence[Token], layer: int, head: int | None, top: int) -> Attended:
    """One row of weights as a person reads it: special tokens apart, then the largest others."""
    order = weights.sort(descending=True, stable=True)
    best = [
        Share(number, tokens[number].text, weight)
        for weight, number in zip(order.values.tolist(), order.indices.tolist(), strict=True)
        if not tokens[number].special and weight > 0  # what a causal model may not see is not named
    ]
    return Attended(layer, head, float(special_share(weights, tokens)), best[:top], weights.tolist())


def _occurrences(traces: Sequence[Trace], word: str, layer: int | None, head: int | None, top: int) -> list[Occurrence]:
    occurrences = []
    for number, trace in enumerate(traces):
        try:
            found = trace.word(word)
        except RegardError as error:
            raise RegardError(f"text {number + 1}: {error}" if len(traces) > 1 else str(error)) from None
        for nth, each in enumerate(found):
            label = f"{number + 1}{_letters(nth) if len(found) > 1 else ''}"
            occurrences.append(_occurrence(label, number, trace, each, layer, head, top))
    return occurrences


def _occurrence(
    label: str, number: int, trace: Trace, word: Word, layer: int | None, head: int | None, top: int
) -> Occurrence:
    rows = [gives(weights, word) for weights in trace.attention]  # (H, S) each
    wanted = []
    if layer is not None or head is not None:
        layers = range(len(rows)) if layer is None else [layer]
        wanted = [(n, h) for n in layers for h in (range(rows[n].shape[0]) if head is None else [head])]
    return Occurrence(
        label=label,
        text=number,
        word=word.text,
        start=word.start,
        end=word.end,
        tokens=list(word.tokens),
        learned=None if trace.learned is None else vector(trace.learned, word).tolist(),
        states=[vector(state, word).tolist() for state in trace.states],
        contextual=vector(trace.contextual, word).tolist(),
        attends=[attended(row.mean(0), trace.tokens, n, None, top) for n, row in enumerate(rows)],
        heads=[attended(rows[n][h], trace.tokens, n, h, top) for n, h in wanted],
    )


def _pair(a: Occurrence, in_a: Trace, b: Occurrence, in_b: Trace) -> Pair:
    equal = learned = None
    if in_a.learned is not None and in_b.learned is not None:
        equal = torch.equal(in_a.learned[a.tokens], in_b.learned[b.tokens])
        learned = cosine(in_a.learned[a.tokens].mean(0), in_b.learned[b.tokens].mean(0))
    states = [cosine(x[a.tokens].mean(0), y[b.tokens].mean(0)) for x, y in zip(in_a.states, in_b.states, strict=True)]
    return Pair(a.label, b.label, equal, learned, states)


def _reference(reference: Trace, occurrence: Occurrence, trace: Trace) -> Reference:
    own = [n for n, token in enumerate(reference.tokens) if not token.special]
    learned = None
    if reference.learned is not None and trace.learned is not None:
        learned = cosine(reference.learned[own].mean(0), trace.learned[occurrence.tokens].mean(0))
    contextual = cosine(reference.contextual[own].mean(0), trace.contextual[occurrence.tokens].mean(0))
    return Reference(reference.text, occurrence.label, learned, contextual)


def _overview(trace: Trace, head: int | None, top: int) -> list[list[Attended]]:
    """Per token, per layer: where its attention goes, mean of heads or of one head."""
    table: list[list[Attended]] = [[] for _ in trace.tokens]
    for n, weights in enumerate(trace.attention):
        rows = weights.dense().mean(0) if head is None else weights[head]  # (L, S)
        for i, row in enumerate(rows):
            table[i].append(replace(attended(row, trace.tokens, n, head, top), weights=None))
    return table


def _letters(number: int) -> str:
    """0 → a, 25 → z, 26 → aa."""
    return (_letters(number // 26 - 1) if number > 25 else "") + chr(ord("a") + number % 26)
