"""Write which calls align a translation with its source, and which of them does it best."""

from regard.explain.weights.alignment import Alignment, why_these_layers
from regard.explain.wording import capital
from regard.trace.layer_subset import CallNumber
from regard.web.score_rules import Data


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
