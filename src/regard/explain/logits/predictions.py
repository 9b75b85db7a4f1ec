"""What a language model would say: the likeliest tokens after a place, or at it.

A causal model and a decoder say what comes after a token; a masked language model what stands at it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.text.tokens import Spelled
from regard.trace.trace import Trace, is_causal

Names = Callable[[int], str]  # how a token id is spelled


@dataclass(frozen=True)
class Candidate:
    """A token of the vocabulary and its probability."""

    id: int
    text: str
    probability: float


@dataclass(frozen=True)
class Prediction:
    """What the model says of one place: the likeliest tokens first.

    at: the token whose row this is. after: whether the candidates come after it (causal) or stand in its place; None
    where they are labels that a token classifier gives it.
    occurrence: the label of the occurrence of the followed word it belongs to, None for the text's end or a mask.
    """

    text: int
    token: int
    at: str
    after: bool | None
    occurrence: str | None
    candidates: list[Candidate]


def spoken(trace: Trace, words: Sequence[tuple[str, Sequence[int]]]) -> list[tuple[int, str | None]]:
    """The tokens at which it is worth to see what a model would say, each with an occurrence's label or None.

    words: occurrences, (label, tokens). Of a causal model: the last token of each, and the text's last. Of a masked
    language model: every token of the words, and the masks in the text.
    """
    last = len(trace.tokens) - 1
    if is_causal(trace):
        places: list[tuple[int, str | None]] = [(tokens[-1], label) for label, tokens in words]
        return places if any(token == last for token, _ in places) else [*places, (last, None)]
    masks = [n for n, t in enumerate(trace.tokens) if t.special and t.end > t.start and "mask" in t.text.lower()]
    return [(token, label) for label, tokens in words for token in tokens] + [(n, None) for n in masks]


def written(words: Sequence[tuple[str, Sequence[int]]]) -> list[tuple[int, str | None]]:
    """The tokens after which a decoder writes a word of its target, the first token of it: see `spoken`."""
    return [(tokens[0] - 1, label) for label, tokens in words if tokens[0] > 0]


def candidates(logits: Float[Tensor, " V"], names: Names, top: int) -> list[Candidate]:
    """The likeliest tokens of one row of logits, softmax in float64; ties go to the smaller id."""
    chances = logits.double().softmax(-1)
    best = chances.sort(descending=True, stable=True)
    pairs = zip(best.values[:top].tolist(), best.indices[:top].tolist(), strict=True)
    return [Candidate(number, names(number), chance) for chance, number in pairs]


def names_of(*traces: Trace) -> Names:
    """How ids are spelled: as the traces' tokenizer or file has it, or as in their texts, or by their number."""
    known = {token.id: token.text for trace in traces for token in trace.tokens}
    names_of_ids = next((trace.names for trace in traces if trace.names is not None), None)
    if names_of_ids is not None and not isinstance(names_of_ids, Spelled):
        return names_of_ids
    for trace in traces:
        if isinstance(trace.names, Spelled):
            known |= trace.names.known
    return Spelled(known)


def predict(
    trace: Trace, text: int, token: int, names: Names, *, top: int = 5, occurrence: str | None = None
) -> Prediction:
    """Return what a trace's logits say at or after one of its tokens. The trace has to have logits."""
    assert trace.logits is not None
    found = candidates(trace.logits[token], trace.labels.__getitem__ if trace.labels else names, top)
    after = None if trace.labels else is_causal(trace)
    return Prediction(text, token, trace.tokens[token].text, after, occurrence, found)
