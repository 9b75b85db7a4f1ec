"""Explain a classifier's label: what one gradient attributes to tokens and heads, and what their ablation changes.

A head's attributed contribution is its output times the gradient of the label's logit. It is split by source token, and
a token's contribution is the sum over all heads. Both estimate, to first order, by how much the logit falls without it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.capture.classes import probabilities
from regard.errors import RegardError
from regard.explain.causes.outcomes import logit, logits_at
from regard.models.inputs import class_or_token_id
from regard.text.words import Word, only_word
from regard.trace.trace import Trace


@dataclass(frozen=True)
class Decision:
    """A label of a word, or of the whole text: then the word is all tokens, and its text is "".

    measure: returns the label's logit in a trace, and its probability, None if the model's logits have none. sources:
    for each attention call, what each head contributes by attention to each token, in logits.
    """

    label: str
    word: Word
    measure: Callable[[Trace], tuple[float, float | None]]
    sources: Sequence[Float[Tensor, "H S"]]


def decided(model: Any, trace: Any, to: str | int, word: str | Word | None) -> Decision:
    """Attribute a label's logit to heads and tokens.

    word: the word that a token classifier labels, by its first token; None for a model that labels the whole text.
    """
    if not model.labels or not isinstance(trace, Trace):
        raise RegardError(f"why: to: {model.name} is no classifier of one text, and has no labels: give a word")
    number = class_or_token_id(model.labels, None, to, f"why: to: {model.name}")
    place = None if word is None else only_word(trace.text, trace.tokens, word)

    def measure(run: Trace) -> tuple[float, float | None]:
        logits = logits_at(run, place).double()
        chances = probabilities(logits, run.labels, model.model)
        return float(logits[number]), None if chances is None else float(chances[number])

    sources = model.attribute_to_heads(trace, logit(model, number, at=place)).sources
    whole = Word("", 0, 0, tuple(range(len(trace.tokens))))
    return Decision(model.labels[number], place or whole, measure, sources)
