"""Why a layer and head are shown, in one line."""

from collections.abc import Sequence

from regard.explain.weights.specific_weights import SpecificWeight
from regard.text.tokens import Token
from regard.views.terminal.layout import short, spelled


def why(best: SpecificWeight, tokens: Sequence[Token], asked: bool = False) -> str:
    """What the head gives there, and what it gives otherwise. asked: it was asked for, and not chosen."""
    query = "".join(tokens[n].text for n in best.queries)
    key = spelled(tokens[best.key].text, 16)
    others = f"others at that distance {best.by_distance:.2f}, to that token {best.by_key:.2f}"
    return f"{'' if asked else 'chosen: '}“{short(query.strip(), 16)}” gives “{key}” {best.weight:.2f} ({others})"
