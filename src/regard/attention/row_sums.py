"""Each query's row maximum and row sum, kept from when they are first needed: O(L) memory."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import region_scores
from regard.attention.kernels.cpu import forward as cpu
from regard.attention.masks import Index
from regard.attention.scores import ScoreRule, working_dtype
from regard.attention.softmax import add_sink, finite_max, row_max_sum, sink_column

BAND = 512  # queries whose row maxima and row sums are computed at a time


def of_queries(
    query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule, batch: int, head: int, rows: Index
) -> tuple[Float[Tensor, " r"], Float[Tensor, " r"]]:
    """Compute (row maximum, row sum) for queries of one head, from the very scores that `region_scores` computes."""
    large = isinstance(rows, slice) and (rows.stop - rows.start) * key.shape[2] >= region_scores.CPU_SCORES
    if (
        isinstance(rows, slice)
        and large
        and region_scores.in_fixed_order(query, key)
        and cpu.fits(query, key, key, rule)
    ):
        from regard.attention.kernels.cpu import row_sums as fast  # numba is loaded when it is first needed

        return fast.row_max_sum(query, key, rule, batch, head, rows.start, rows.stop)
    one = slice(batch, batch + 1), slice(head, head + 1)
    dtype, product = region_scores.dtype_of(query, key), region_scores.product_of(query, key)
    row_max, row_sum = row_max_sum(query, key, rule, *one, rows, dtype, product)
    return row_max[0, 0], row_sum[0, 0]


def of_scores(
    scores: Float[Tensor, "b h r S"], rule: ScoreRule, heads: Index, dtype: torch.dtype
) -> tuple[Float[Tensor, "b h r"], Float[Tensor, "b h r"]]:
    """Compute (row maximum, row sum) of queries whose scores against all keys are at hand. dtype: of the weights."""
    row_max = scores.amax(-1)
    exponentials = (scores - finite_max(row_max)[..., None]).to(dtype).exp_()
    row_sum = exponentials.sum(-1, dtype=scores.dtype)
    sink = sink_column(rule, heads, scores.dtype)
    return (row_max, row_sum) if sink is None else add_sink(row_max, row_sum, sink)


@dataclass(eq=False, repr=False)
class RowSums:
    """Row maxima and row sums of one attention matrix, sinks included, in `region_scores.dtype_of`."""

    query: Float[Tensor, "B H L D"]
    key: Float[Tensor, "B G S D"]
    rule: ScoreRule
    _kept: tuple[Tensor, Tensor, Tensor] | None = None

    def of(self, batch: Index, heads: Index, rows: Index) -> tuple[Float[Tensor, "b h r"], Float[Tensor, "b h r"]]:
        """Return (row maximum, row sum) of queries, computed where they were not known yet."""
        known = self._known(batch, heads, rows)
        if known is not None:
            return known
        for b in range(self.query.shape[0])[batch] if isinstance(batch, slice) else batch.tolist():
            for h in range(self.query.shape[1])[heads] if isinstance(heads, slice) else heads.tolist():
                self._compute(b, h, rows)
        row_max, row_sum, _ = self._tables()
        return row_max[batch][:, heads][:, :, rows], row_sum[batch][:, heads][:, :, rows]

    def of_scores(
        self, scores: Float[Tensor, "b h r S"], batch: Index, heads: Index, rows: Index
    ) -> tuple[Float[Tensor, "b h r"], Float[Tensor, "b h r"]]:
        """Return the same for queries (rows) whose scores against all keys are at hand, and remember it."""
        known = self._known(batch, heads, rows)
        if known is not None:
            return known
        row_max, row_sum = of_scores(scores, self.rule, heads, working_dtype(self.query))
        if isinstance(batch, slice) and isinstance(heads, slice) and isinstance(rows, slice):
            self.keep(batch, heads, rows, row_max, row_sum)
        return row_max, row_sum

    def keep(
        self, batch: slice, heads: slice, rows: slice, row_max: Float[Tensor, "*b r"], row_sum: Float[Tensor, "*b r"]
    ) -> None:
        """Remember those of queries, which were computed from the scores that `region_scores` computes."""
        maxima, sums, known = self._tables()
        maxima[batch, heads, rows], sums[batch, heads, rows] = row_max, row_sum
        known[batch, heads, rows] = True

    def _known(self, batch: Index, heads: Index, rows: Index) -> tuple[Tensor, Tensor] | None:
        row_max, row_sum, known = (table[batch][:, heads][:, :, rows] for table in self._tables())
        return (row_max, row_sum) if bool(known.all()) else None

    def _compute(self, batch: int, head: int, rows: Index) -> None:
        row_max, row_sum, known = self._tables()
        if isinstance(rows, slice):
            bands: list[Index] = [slice(r, min(r + BAND, rows.stop)) for r in range(rows.start, rows.stop, BAND)]
        else:
            bands = list(rows.split(BAND))
        for band in bands:
            if not bool(known[batch, head, band].all()):
                row_max[batch, head, band], row_sum[batch, head, band] = of_queries(
                    self.query, self.key, self.rule, batch, head, band
                )
                known[batch, head, band] = True

    def _tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """(row maxima, row sums, whether they are known), each (B, H, L)."""
        if self._kept is None:
            dtype, shape = region_scores.dtype_of(self.query, self.key), self.query.shape[:3]
            maxima = torch.zeros(shape, dtype=dtype, device=self.query.device)
            self._kept = maxima, torch.zeros_like(maxima), torch.zeros_like(maxima, dtype=torch.bool)
        return self._kept
