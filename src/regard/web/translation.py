"""Write which calls align a translation with its source, and which of them does it best."""

from regard.explain.weights.alignment import Alignment
from regard.trace.layer_subset import CallNumber
from regard.web.score_rules import Data


def alignment_data(found: Alignment, calls: dict[CallNumber, int]) -> Data | None:
    """Write an alignment. calls: the page's cross-attention calls of this pair; None where there is none of them.

    The best is the layer whose rows look at the source of the token that they write next, where the page has it.
    """
    if not calls:
        return None
    own = {layer: number for (layer, nth), number in reversed(calls.items())}
    written, read = found.written_layer, found.read_layer
    if written in own:
        best = own[written]
        why = (
            f"Layer {written}, whose rows look at what the next token comes from, and layer {read}, whose rows look at "
            f"what their own token came from, agree most of all layers ({found.agreement:.2f}, 1 is the most)."
        )
    else:
        best = next(iter(calls.values()))
        why = f"Layer {written} aligns the texts best; it was left out of this page."
    return {"calls": list(calls.values()), "best": {"call": best, "head": found.head, "why": why}}
