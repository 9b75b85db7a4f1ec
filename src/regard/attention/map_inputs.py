"""What an attention map is computed from: queries, keys and the rule of the scores. Nothing of size L × S."""

from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.scores import ScoreRule, working_dtype

Map = TypeVar("Map", bound="MapInputs")

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


class MapInputs:
    """Query (B, H, L, D), key (B, G, S, D) and rule of one attention call, detached and by reference.

    offset: the position of query 0 among the keys, None for cross-attention.
    ndim: how many of the axes (B, H, L, S) the map shows, counted from the right; the others have size 1.
    shape: those axes. dtype: what scores and weights are computed in, float32 or float64. device: where.
    """

    def __init__(
        self,
        query: Float[Tensor, "B H L D"],
        key: Float[Tensor, "B G S D"],
        rule: ScoreRule,
        *,
        offset: int | None = None,
        ndim: int = 4,
    ) -> None:
        self.query, self.key, self.rule = query.detach(), key.detach(), rule.detached()
        self.offset, self.ndim = offset, ndim
        self._full_shape = (*query.shape[:3], key.shape[2])
        self.shape: tuple[int, ...] = self._full_shape[4 - ndim :]
        self.dtype, self.device = working_dtype(query), query.device

    def __len__(self) -> int:
        return self.shape[0]

    def crop(self: Map, batch: int, rows: slice, cols: slice) -> Map:
        """Take the map of one text of a batch, (H, rows, cols): its weights are those of a softmax over cols alone.

        Meant for taking padding away: keys outside cols have to be masked for every one of these rows.
        """
        if isinstance(batch, bool) or not isinstance(batch, int):
            raise TypeError(f"crop: batch is {batch!r}, it needs to be the number of a text")
        if not -self._full_shape[0] <= batch < self._full_shape[0]:
            texts = self._full_shape[0]
            raise IndexError(
                f"crop: batch is {batch}, the map has {texts} texts: it needs to be {-texts} to {texts - 1}"
            )
        batch %= self._full_shape[0]
        for name, run in (("rows", rows), ("cols", cols)):
            if not isinstance(run, slice) or run.step not in (None, 1):
                raise TypeError(f"{name}: given {run!r}, crop needs a slice of step 1")
        rows = slice(*rows.indices(self._full_shape[2])[:2])
        cols = slice(*cols.indices(self._full_shape[3])[:2])
        offset = None if self.offset is None else self.offset + rows.start - cols.start
        query = self.query[batch : batch + 1, :, rows]
        key = self.key[batch : batch + 1, :, cols]
        return type(self)(query, key, self.rule.crop(batch, rows, cols), offset=offset, ndim=3)

    def to(self: Map, target: torch.device | torch.dtype | str) -> Map:
        """Return the same map on another device, or with queries and keys in another floating-point dtype.

        Raises:
            TypeError, ValueError: neither a device nor such a dtype.
        """
        if not isinstance(target, torch.device | torch.dtype | str):
            raise TypeError(f"to: given {target!r}, needs a device such as 'cpu' or a dtype such as torch.float64")
        if isinstance(target, torch.dtype) and target not in DTYPES:
            raise TypeError(f"to: given {target}, needs to be float64, float32, bfloat16 or float16")
        if isinstance(target, str):
            try:
                target = torch.device(target)
            except RuntimeError as error:
                raise ValueError(f"to: given {target!r}, needs a device such as 'cpu' or 'cuda:0'") from error
        query, key = self.query.to(target), self.key.to(target)
        return type(self)(query, key, self.rule.to(query.device), offset=self.offset, ndim=self.ndim)
