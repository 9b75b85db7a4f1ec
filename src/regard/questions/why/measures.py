"""The measures that `regard why` shows, once: sentences, terminal, page and the schema of its JSON say them so."""

from dataclasses import dataclass, field

CHANGES = "changes"  # the heading of what causes are ranked by, whichever it is
SIDES = {"decoder": "target ", "cross": "source "}  # of an encoder-decoder, whose tokens the numbers count


@dataclass(frozen=True)
class Measure:
    """One number of a cause. heading, of_head: of its column, of heads where that is another.

    of_tokens, of_heads: what it is of either, as a note says it.
    """

    heading: str
    of_tokens: str
    of_heads: str
    of_head: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Change(Measure):
    """What is measured by taking a cause away. its: what of a word changes. of: the same, with room for its name.

    unit: what stands behind a number.
    """

    its: str
    of: str
    unit: str


_MOVED = "1 - cosine of the word's contextual embedding with and without it"
_NEXT = "KL divergence in nats of what the model says next after the word, with and without it"

CHANGED = {
    "effect": Change(
        "effect", _MOVED, _MOVED, "its contextual embedding", "the contextual embedding of {}", "as 1 - cosine"
    ),
    "divergence": Change(
        "next token", _NEXT, _NEXT, "what the model says next", "what the model says after {}",
        "in nats, as KL divergence",
    ),
}  # fmt: skip
CONTRIBUTION = Measure(
    "contribution",
    "share of the word's vector that it gave, absolute values, mean of all layers",
    "share of the word's vector that it gave in its layer, absolute values",
)
WEIGHT = Measure(
    "weight",
    "mean of all layers and heads",
    "the part of its attention that goes neither to special tokens nor to attention sinks",
    of_head="weight on words",
)
