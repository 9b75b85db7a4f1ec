"""Ablate heads and edges of weights that a program computed itself."""

import torch
from torch import Tensor

from regard.attention.ablated_call import CallAblations
from regard.attention.ablation import HeadAblation
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
    if ablations.values or ablations.weights or not all(isinstance(x, HeadAblation) for x in ablations.outputs):
        raise RegardError(f"{path}: its attention is written by hand, so it can be ablated and not patched")
    new, shown = (_four_axes(layout.as_map(tensor, heads)) for tensor in (weights, plain))
    sizes = [slice(0, size) for size in new.shape]
    for edges in ablations.removed:
        place = edges.tile(sizes[0], sizes[1], sizes[2], sizes[3], new.device)
        if place is None:
            continue
        whole = shown.sum(-1, keepdim=True)
        if bool((whole > 1 + ROUNDING).any() | (shown < 0).any()):
            raise RegardError(f"{path}: its weights are no part of a softmax, so its edges can't be ablated")
        lacking = (1 - whole).clamp_min(0)
        lacking = torch.where(lacking < ROUNDING, 0, lacking)  # else what rounding left would count as a sink
        cut = shown.masked_fill(place, 0.0)
        rest = cut.sum(-1, keepdim=True) + lacking
        factor = (whole + lacking) / torch.where(rest == 0, 1.0, rest)
        touched = place.any(-1, keepdim=True)
        shown = torch.where(touched, cut * factor, shown)
        new = torch.where(touched, new.masked_fill(place, 0.0) * factor, new)
    for ablation in ablations.outputs:
        index = [
            range(n) if x is None else x for n, x in zip(new.shape[:2], (ablation.batch, ablation.heads), strict=True)
        ]
        left = torch.ones(new.shape[:2], dtype=torch.bool)
        left[torch.tensor(list(index[0]))[:, None], torch.tensor(list(index[1]))] = False
        new = new.masked_fill(~left[..., None, None].to(new.device), 0.0)
    return layout.as_factor(new, weights), layout.as_factor(shown, weights) if ablations.removed else plain


def _four_axes(weights: Tensor) -> Tensor:
    return weights[(None,) * (4 - weights.ndim)]
