"""Explain a classifier's label: what one gradient attributes to tokens and heads, and what their ablation changes.

A head's attributed contribution is its output times the gradient of the label's logit. It is split by source token, and
a token's contribution is the sum over all heads. Both estimate, to first order, by how much the logit falls without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jaxtyping import Float
from torch import Tensor

from regard.capture.classes import probabilities
from regard.errors import RegardError
from regard.explain.causes.outcomes import logit, logits_at
from regard.models.inputs import class_or_token_id
from regard.text.words import Word, only_word
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    from regard.models.model import Model


@dataclass(frozen=True)
class Decision:
    """A label of a word, or of the whole text: then the word is all tokens, and its text is "".

    number: of the label. sources: for each attention call, what each head contributes by attention to each token, in
    logits. logit, probability: the label's, the second None if the model's logits have none.
    """

    model: "Model"
    label: str
    word: Word
    number: int
    sources: Sequence[Float[Tensor, "H S"]]
    logit: float
    probability: float | None

    def falls(self, trace: Trace) -> dict[str, Any]:
        """Return by how much the logit and the probability are lower in another trace of the text."""
        logit, chance = _measured(self.model, trace, self.word, self.number)
        lower = None if chance is None or self.probability is None else self.probability - chance
        return {"logit": self.logit - logit, "probability": lower}


def decided(model: "Model", trace: Trace | PairTrace, to: str | int, word: str | Word | None) -> Decision:
    """Attribute a label's logit to heads and tokens.

    word: the word that a token classifier labels, by its first token; None for a model that labels the whole text.
    """
    if not model.labels or not isinstance(trace, Trace):
        raise RegardError(f"why: to: {model.name} is no classifier of one text, and has no labels: give a word")
    number = class_or_token_id(model.labels, None, to, f"why: to: {model.name}")
    place = None if word is None else only_word(trace.text, trace.tokens, word)
    sources = model.attribute_to_heads(trace, logit(model, number, at=place)).sources
    whole = Word("", 0, 0, tuple(range(len(trace.tokens))))
    measured = _measured(model, trace, place or whole, number)
    return Decision(model, model.labels[number], place or whole, number, sources, *measured)


def _measured(model: "Model", trace: Trace, word: Word, number: int) -> tuple[float, float | None]:
    """A label's logit and its probability."""
    logits = logits_at(trace, word if word.text else None).double()
    chances = probabilities(logits, trace.labels, model.model)
    return float(logits[number]), None if chances is None else float(chances[number])
