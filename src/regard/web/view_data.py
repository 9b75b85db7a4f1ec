"""Write what single views of a page are about: calls side by side, how a text was written, how one was translated."""

from collections.abc import Callable, Sequence

from jaxtyping import Float
from torch import Tensor

from regard.explain.logits.predictions import candidates
from regard.explain.weights.alignment import Alignment, why_these_layers
from regard.explain.wording import capital
from regard.text.tokens import Token
from regard.trace.layer_subset import CallNumber
from regard.trace.trace import Trace
from regard.web.score_rules import Data

OTHERS = 5  # tokens beside the chosen one that a step names


def comparison_data(name: str, before: dict[CallNumber, int], after: dict[CallNumber, int]) -> Data | None:
    """Write the calls that both texts have; None without any. before, after: their calls by (layer, which of its)."""
    both = [call for call in before if call in after]
    if not both:
        return None
    return {"name": name, "before": [before[call] for call in both], "after": [after[call] for call in both]}


def comparable(before: Trace, after: Trace) -> bool:
    """Whether two traces are of the same tokens."""
    return len(before.tokens) > 0 and [t.id for t in before.tokens] == [t.id for t in after.tokens]


def comparison_name(before: Trace, after: Trace, names: tuple[str, str]) -> str:
    """What a comparison is called: by what was done to the second pass alone, or by the names of the texts."""
    done = [note for note in after.status.notes if note not in before.status.notes]
    if done and not set(before.status.notes) - set(after.status.notes):
        return f"before and after: {', '.join(note.removesuffix('.') for note in done)}"
    return " and ".join(names)


def alignment_data(found: Alignment, calls: dict[CallNumber, int]) -> Data | None:
    """Write an alignment. calls: the page's cross-attention calls of this pair; None where there is none of them.

    The best is the layer whose rows look at the source of the token that they write next, where the page has it.
    """
    if not calls:
        return None
    own = {layer: number for (layer, nth), number in reversed(calls.items())}
    best = own.get(found.written_layer, next(iter(calls.values())))
    left = "" if found.written_layer in own else "; the first of them is left out of this page"
    why = f"{capital(why_these_layers(found))}{left}."
    return {"calls": list(calls.values()), "best": {"call": best, "head": found.head, "why": why}}


def generation_data(
    text: int,
    first: int,
    tokens: Sequence[Token],
    logits: Float[Tensor, "L V"],
    names: Callable[[int], str] | None = None,
) -> Data:
    """Write the steps of a text, its tokens from `first` on. text: its number. names: how ids are spelled.

    Of each step: the token that was chosen, how likely that was, what else was likely. Probabilities are the softmax of
    the model's own logits, before temperature and top-k change them.
    """
    assert 0 < first <= len(tokens)  # the first token of all is nobody's choice
    steps = [_step(token, row, names) for token, row in zip(tokens[first:], logits[first - 1 :], strict=False)]
    return {"text": text, "first": first, "steps": steps}


def _step(token: Token, logits: Float[Tensor, " V"], names: Callable[[int], str] | None) -> Data:
    chance = float(logits.detach().double().cpu().softmax(0)[token.id])
    best = candidates(logits.detach().cpu(), names or "id {}".format, OTHERS + 1)
    others = [[each.text, each.probability] for each in best if each.id != token.id]
    return {"chosen": token.text, "probability": chance, "others": others[:OTHERS]}
