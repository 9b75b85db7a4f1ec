"""Ablate heads and edges of weights that a program computed itself."""

import torch
from torch import Tensor

from regard.attention.ablated_call import CallAblations
from regard.attention.ablation import HeadAblation
from regard.attention.edges import Edges
from regard.capture.watching.weighted_sums import Layout
from regard.errors import RegardError

ROUNDING = 1e-3


def ablated_weights(
    ablations: CallAblations, path: str, weights: Tensor, plain: Tensor, layout: Layout, heads: int | None
) -> tuple[Tensor, Tensor]:
    """Return (weights to multiply by, weights to show) without what is ablated.

    plain: the weights before dropout. The weights of an ablated edge go to what is left of its row, and to what the row
    lacks of 1 (a sink). An ablated head has weights 0, and is shown as it attends.

    Raises:
        RegardError: something is patched, or edges are ablated in rows that are no part of a softmax.
    """
    if (
        ablations.values
        or ablations.weights
        or not all(isinstance(change, HeadAblation) for change in ablations.outputs)
    ):
        raise RegardError(f"{path}: its attention is written by hand, so it can be ablated and not patched")
    maps = [layout.as_map(tensor, heads) for tensor in (weights, plain)]
    new, shown = (tensor[(None,) * (4 - tensor.ndim)] for tensor in maps)
    batch, rows, queries, keys = (slice(0, size) for size in new.shape)
    for edges in ablations.removed:
        place = edges.tile(batch, rows, queries, keys, new.device)
        assert place is not None
        whole = shown.sum(-1, keepdim=True)
        if bool((whole > 1 + ROUNDING).any() | (shown < 0).any()):
            raise RegardError(f"{path}: its weights are no part of a softmax, so its edges can't be ablated")
        lacking = torch.where(whole < 1 - ROUNDING, 1 - whole, 0)  # else what rounding left would count as a sink
        cut = shown.masked_fill(place, 0.0)
        rest = cut.sum(-1, keepdim=True) + lacking
        factor = torch.where(place.any(-1, keepdim=True), (whole + lacking) / torch.where(rest == 0, 1.0, rest), 1.0)
        shown, new = cut * factor, new.masked_fill(place, 0.0) * factor
    for head in ablations.outputs:  # all edges of it
        place = Edges((*new.shape,), head.batch, head.heads).tile(batch, rows, queries, keys, new.device)  # type: ignore[arg-type]
        assert place is not None
        new = new.masked_fill(place, 0.0)
    return layout.as_factor(new, weights), layout.as_factor(shown, weights) if ablations.removed else plain
