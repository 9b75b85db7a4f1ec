"""Write how a model wrote a text: of each step the token that it chose, how likely that was, what else was likely.

Probabilities are the softmax of the model's own logits, before temperature and top-k change them.
"""

from collections.abc import Callable, Sequence

from jaxtyping import Float
from torch import Tensor

from regard.explain.logits.predictions import candidates
from regard.text.tokens import Token
from regard.web.score_rules import Data

OTHERS = 5  # tokens beside the chosen one that a step names


def generation_data(
    text: int,
    first: int,
    tokens: Sequence[Token],
    logits: Float[Tensor, "L V"],
    names: Callable[[int], str] | None = None,
) -> Data:
    """Write the steps of a text, its tokens from `first` on. text: its number. names: how ids are spelled."""
    assert 0 < first <= len(tokens)  # the first token of all is nobody's choice
    steps = [_step(token, row, names) for token, row in zip(tokens[first:], logits[first - 1 :], strict=False)]
    return {"text": text, "first": first, "steps": steps}


def _step(token: Token, logits: Float[Tensor, " V"], names: Callable[[int], str] | None) -> Data:
    chance = float(logits.detach().double().cpu().softmax(0)[token.id])
    best = candidates(logits.detach().cpu(), names or "id {}".format, OTHERS + 1)
    others = [[each.text, each.probability] for each in best if each.id != token.id]
    return {"chosen": token.text, "probability": chance, "others": others[:OTHERS]}
