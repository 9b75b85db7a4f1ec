"""Padded batches: where each token stands in its own text, and which keys are real."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.errors import RegardError


@dataclass(frozen=True, eq=False)
class PaddedPositions:
    """positions: (L,) where all texts have the same. keys: which are real, None where that need not be said.

    stop: one more than the largest position, or an upper bound of that.
    """

    positions: Int[Tensor, "*b L"]
    keys: Bool[Tensor, "B L"] | None
    stop: int


def positions_in_padded_batch(
    ids: Int[Tensor, "B L"],
    mask: Bool[Tensor, "B L"] | Int[Tensor, "B L"] | None,
    start: int = 0,
    *,
    causal: bool = False,
) -> PaddedPositions:
    """Return where the tokens of a batch stand, each in its own text.

    mask: True or 1 for real tokens. start: the first one's position. causal: whether padding on the right is out of
    sight already, because no token looks to its right.
    """
    length = ids.shape[1]
    plain = torch.arange(start, start + length, device=ids.device)
    if mask is None:
        return PaddedPositions(plain, None, start + length)
    if mask.shape != ids.shape:
        raise RegardError(f"mask: given shape {tuple(mask.shape)}, needs {tuple(ids.shape)} as the ids have")
    real = mask.bool()
    if bool(real.all()):
        return PaddedPositions(plain, None, length)
    if not bool((real[:, 1:] & ~real[:, :-1]).any()):  # padding on the right alone: positions count from 0 all the same
        return PaddedPositions(plain, None if causal else real, length)
    return PaddedPositions((real.cumsum(1) - 1).clamp(min=0), real, int(real.sum(1).max()))


def check_transformer_ids(ids: Int[Tensor, "B L"], stop: int, vocabulary: int, limit: int | None) -> None:
    """Refuse texts that a model cannot read. The ids' range is left to the table's own check on GPUs
    and in compiled models. stop: behind the last position. vocabulary: how many ids there are. limit: of positions.
    """
    if not ids.numel():
        raise RegardError(f"ids: given shape {tuple(ids.shape)}, needs at least one token")
    if limit is not None and stop > limit:
        raise RegardError(f"ids: given {stop} tokens, the model takes {limit} at most")
    if ids.device.type == "cpu" and not torch.compiler.is_compiling():
        low, high = (int(number) for number in torch.aminmax(ids))
        if low < 0 or high >= vocabulary:
            raise RegardError(f"ids: given id {low if low < 0 else high}, the model has ids 0 to {vocabulary - 1}")
