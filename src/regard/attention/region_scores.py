"""Compute what a map's regions are read from, scores and row sums: the same numbers whatever region is asked for.

A weight is exp(score - row maximum) / row sum. Products of different shapes round a score differently, at 10,000 by
1e-3: with a row sum from one of them and scores from another, weights of 1.001 would come out. So scores come from

- a product that rounds every number in one way (`kernels/cpu/fixed_order.py`): large maps on CPUs, and float64 there;
- a product in float64, whose rounding is far below what float32 can show: all else.

Each query's row maximum and row sum are made of these, and kept from when they are first needed: O(L) memory.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels.cpu import forward as cpu
from regard.attention.masks import Index
from regard.attention.scores import Product, ScoreRule, grouped_product, score_tile, working_dtype
from regard.attention.softmax import add_sink_to_rows, finite_max, row_max_sum, sink_column

# Scores of a head, of at least so many queries, from which numba's half second of loading, once, is worth it: keys are
# not copied to float64 then.
CPU_SCORES, CPU_QUERIES = 1 << 20, 64
BAND = 512  # queries whose row maxima and row sums are computed at a time


def dtype_of(query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"]) -> torch.dtype:
    """Return the dtype that a map's scores, row maxima and row sums are computed in."""
    if scores_in_fixed_order(query, key) or query.device.type == "mps":  # which has no float64
        return working_dtype(query)
    return torch.float64


def scores(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    batch: Index,
    heads: Index,
    rows: Index,
    cols: Index,
) -> Float[Tensor, "b h r c"]:
    """Compute the scores of a region in `dtype_of`, -inf where the mask forbids.

    query, key, rule, batch, heads, rows, cols: as `score_tile` takes them.
    """
    dtype = dtype_of(query, key)
    return score_tile(query, key, rule, batch, heads, rows, cols, dtype, map_score_product(query, key))


def weights(
    scores: Float[Tensor, "b h r c"],
    row_max: Float[Tensor, "b h r"],
    row_sum: Float[Tensor, "b h r"],
    dtype: torch.dtype,
) -> Float[Tensor, "b h r c"]:
    """Compute the weights of a region in dtype. Only the difference of score and maximum is rounded before exp.

    Args:
        scores: of the region, -inf where the mask forbids.
        row_max, row_sum: over all keys that a query may attend to, its head's sink included.
    """
    exponentials = (scores - finite_max(row_max)[..., None]).to(dtype).exp_()
    return exponentials.div_(torch.where(row_sum == 0, 1.0, row_sum).to(dtype)[..., None])


def scores_in_fixed_order(query: Tensor, key: Tensor) -> bool:
    """Return whether this map's scores come from the product that rounds in one way."""
    length, size = query.shape[2], key.shape[2]
    if query.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    return query.dtype == torch.float64 or max(length, CPU_QUERIES) * size >= CPU_SCORES


def map_score_product(query: Tensor, key: Tensor) -> Product:
    """Return the product that this map's scores come from."""
    if not scores_in_fixed_order(query, key):
        return grouped_product
    from regard.attention.kernels.cpu import fixed_order

    return fixed_order.grouped


def of_queries(
    query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule, batch: int, head: int, rows: Index
) -> tuple[Float[Tensor, " r"], Float[Tensor, " r"]]:
    """Compute (row maximum, row sum) for queries of one head, from the very scores that `scores` computes.

    Args:
        query, key, rule: of the whole call.
        batch, head: the numbers of the text and of its query head.
        rows: which queries.
    """
    large = isinstance(rows, slice) and (rows.stop - rows.start) * key.shape[2] >= CPU_SCORES
    if isinstance(rows, slice) and large and scores_in_fixed_order(query, key) and cpu.fits(query, key, key, rule):
        from regard.attention.kernels.cpu import row_sums as fast  # numba is loaded when it is first needed

        return fast.threaded_row_max_sum(query, key, rule, batch, head, rows.start, rows.stop)
    one = slice(batch, batch + 1), slice(head, head + 1)
    dtype, product = dtype_of(query, key), map_score_product(query, key)
    row_max, row_sum = row_max_sum(query, key, rule, *one, rows, dtype, product)
    return row_max[0, 0], row_sum[0, 0]


def of_scores(
    scores: Float[Tensor, "b h r S"], rule: ScoreRule, heads: Index, dtype: torch.dtype
) -> tuple[Float[Tensor, "b h r"], Float[Tensor, "b h r"]]:
    """Compute (row maximum, row sum) of queries whose scores against all keys are at hand.

    Args:
        scores: of the queries of some heads against all keys.
        rule: of the whole call, for the sinks.
        heads: which heads the scores are of.
        dtype: of the weights.
    """
    row_max = scores.amax(-1)
    exponentials = (scores - finite_max(row_max)[..., None]).to(dtype).exp_()
    row_sum = exponentials.sum(-1, dtype=scores.dtype)
    sink = sink_column(rule, heads, scores.dtype)
    return (row_max, row_sum) if sink is None else add_sink_to_rows(row_max, row_sum, sink)


@dataclass(eq=False, repr=False)
class RowSums:
    """Row maxima and row sums of one attention matrix, sinks included, in `dtype_of`."""

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
        """Return those of queries whose scores against all keys are at hand, and remember them.

        scores: -inf where the mask forbids. batch, heads, rows: which texts, heads and queries the scores are of.
        """
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
        """Remember row_max and row_sum of some queries, which were computed from what `scores` gives.

        Args:
            batch, heads, rows: which texts, heads and queries they are of.
            row_max, row_sum: of these queries, sinks included.
        """
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
            dtype, shape = dtype_of(self.query, self.key), self.query.shape[:3]
            maxima = torch.zeros(shape, dtype=dtype, device=self.query.device)
            self._kept = maxima, torch.zeros_like(maxima), torch.zeros_like(maxima, dtype=torch.bool)
        return self._kept
