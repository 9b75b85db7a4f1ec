"""How an occurrence of a followed word got from layer to layer, and the other word that had most share in it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from regard.errors import RegardError
from regard.explain.causes.layer_updates import Attending, LayerUpdate, layer_updates
from regard.explain.texts.occurrences import Occurrence
from regard.explain.weights.word_links import other_words
from regard.trace.trace import PairTrace, Trace


@dataclass(frozen=True)
class Brought:
    """A token of another word, and the share that it had, through the attention of one layer, in that layer's step."""

    layer: int
    token: int
    text: str
    share: float


@dataclass(frozen=True)
class WordUpdates:
    """An occurrence's layer updates, or the reason why they cannot be split exactly.

    most: the largest share that another word of the text has in any of them, special tokens and sinks aside; None
    where none has one above 0.
    """

    occurrence: str
    updates: list[LayerUpdate] | None
    refused: str | None
    most: Brought | None = None


def word_updates(
    trace: Trace | PairTrace, occurrence: Occurrence, top: int, sinks: Collection[int] = ()
) -> WordUpdates:
    """Split what each layer added to an occurrence. top: how many source tokens to name; sinks: numbers of tokens."""
    sides = trace.sides
    try:
        steps = layer_updates(trace, occurrence.as_word(), top=max(top, *(len(side.tokens) for side in sides)))
    except RegardError as error:
        return WordUpdates(occurrence.label, None, str(error))
    others = set(other_words(sides[-1].tokens, occurrence.tokens, sinks))
    named = [replace(s, attention=_first(s.attention, top), cross=_first(s.cross, top)) for s in steps]
    return WordUpdates(occurrence.label, named, None, most_brought(steps, others))


def most_brought(steps: Sequence[LayerUpdate], others: Collection[int]) -> Brought | None:
    """Find the largest share of some tokens in any step, of all that the steps name; the first of several alike."""
    found = [
        Brought(step.layer, source.token, source.text, source.share)
        for step in steps
        for source in (step.attention.top if step.attention else ())
        if source.token in others and source.share > 0
    ]
    return max(found, key=lambda each: each.share, default=None)


def _first(part: Attending | None, top: int) -> Attending | None:
    """What an attention block did, with its first source tokens alone."""
    return None if part is None else replace(part, top=part.top[:top])
