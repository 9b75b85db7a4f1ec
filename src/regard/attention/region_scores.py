"""Compute the weights of a region from its scores and from its queries' row maxima and row sums.

A weight is exp(score - row maximum) / row sum. How far it is from float64 depends on the scores:

- maps below LARGE weights a head, and all maps on GPUs: products in float64, whose rounding float32 cannot show;
- larger maps on CPUs: products in float32, as exact as softmax(query @ keyᵀ) in PyTorch. Products of different shapes
  may round a score differently, above all narrow ones, so that a weight could come out above 1: it is clamped.

Row maxima and row sums are kept from when they are first needed: O(L) memory.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels.cpu import forward as cpu
from regard.attention.kernels.result import KernelResult
from regard.attention.masks import Index, positions
from regard.attention.scores import TILE_COLS, ScoreRule, score_tile, score_tile_budget, working_dtype
from regard.attention.softmax import add_sink_to_rows, finite_max, row_max_sum, sink_column, softmax_rescaling

LARGE = 1 << 20  # weights of a head
LEAST_SIDE = 16  # rows and columns from which libraries multiply alike, whatever the shape


def dtype_of(query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"]) -> torch.dtype:
    """Return the dtype that a map's scores, row maxima and row sums are computed in."""
    large = query.device.type == "cpu" and query.shape[2] * key.shape[2] >= LARGE
    return working_dtype(query) if large or query.device.type == "mps" else torch.float64  # which mps has not


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
    if dtype != torch.float32:
        return score_tile(query, key, rule, batch, heads, rows, cols, dtype)
    wide = [_widened(run, each.shape[2]) for run, each in ((rows, query), (cols, key))]
    found = score_tile(query, key, rule, batch, heads, *wide, dtype)
    for axis, (run, read) in enumerate(zip((rows, cols), wide, strict=True), 2):
        if isinstance(run, slice) and isinstance(read, slice):
            found = found.narrow(axis, run.start - read.start, run.stop - run.start)
    return found


def _widened(run: Index, size: int) -> Index:
    """Return a run of at least LEAST_SIDE positions around it, as far as there are."""
    if not isinstance(run, slice):
        return run
    start = max(0, min(run.start, size - LEAST_SIDE))
    return slice(start, min(size, max(run.stop, start + LEAST_SIDE)))


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
    return exponentials.div_(torch.where(row_sum == 0, 1.0, row_sum).to(dtype)[..., None]).clamp_(max=1.0)


def weights_of_whole_rows(
    scores: Float[Tensor, "b h r S"], rule: ScoreRule, heads: Index, dtype: torch.dtype
) -> tuple[Float[Tensor, "b h r S"], Float[Tensor, "b h r"], Float[Tensor, "b h r"]]:
    """Compute (weights, row maximum, row sum) of queries whose scores against all keys are at hand.

    Args:
        scores: of the queries of some heads against all keys.
        rule: of the whole call, for the sinks.
        heads: which heads the scores are of.
        dtype: of the weights.
    """
    row_max = scores.amax(-1)
    exponentials = (scores - finite_max(row_max)[..., None]).to(dtype).exp_()
    row_sum = exponentials.sum(-1, dtype=scores.dtype)
    divisor, sink = row_sum, sink_column(rule, heads, scores.dtype)
    if sink is not None:
        on_keys = row_max
        row_max, row_sum = add_sink_to_rows(on_keys, row_sum, sink)
        divisor = row_sum / softmax_rescaling(on_keys, row_max)
    return exponentials.div_(torch.where(divisor == 0, 1.0, divisor).to(dtype)[..., None]), row_max, row_sum


@dataclass(eq=False, repr=False)
class RowSums:
    """Row maxima and row sums of one attention matrix, sinks included, in `dtype_of`."""

    query: Float[Tensor, "B H L D"]
    key: Float[Tensor, "B G S D"]
    rule: ScoreRule
    _kept: tuple[Tensor, Tensor, Tensor] | None = None

    def of(self, batch: Index, heads: Index, rows: Index) -> tuple[Float[Tensor, "b h r"], Float[Tensor, "b h r"]]:
        """Return (row maximum, row sum) of queries, computed where they were not known yet."""
        where = self._where(batch, heads, rows)
        row_max, row_sum, known = self._tables()
        if not bool(known[where].all()):
            rows = _widened(rows, self.query.shape[2])
            wide = self._where(batch, heads, rows)
            texts, numbers, queries = (each.flatten() for each in wide)
            call = self.query, self.key, self.key[..., :1], self.rule
            if isinstance(rows, slice) and row_max.dtype == torch.float32 and cpu.fits(*call):
                result = KernelResult(
                    row_max.new_empty(*row_max.shape, 1), torch.empty_like(row_max), "", (row_max, row_sum)
                )
                cpu.forward_rows(*call, texts.tolist(), numbers.tolist(), rows, result)
            else:
                step = max(1, score_tile_budget(self.query) // (TILE_COLS * len(texts) * len(numbers)))
                for part in queries.split(step):
                    band = slice(int(part[0]), int(part[-1]) + 1) if isinstance(rows, slice) else part
                    found = row_max_sum(self.query, self.key, self.rule, batch, heads, band, row_max.dtype)
                    row_max[*where[:2], part], row_sum[*where[:2], part] = found
            known[wide] = True
        return row_max[where], row_sum[where]

    def keep(
        self, batch: Index, heads: Index, rows: Index, row_max: Float[Tensor, "*b r"], row_sum: Float[Tensor, "*b r"]
    ) -> None:
        """Remember row_max and row_sum of some queries, sinks included, which were computed from all their scores."""
        where = self._where(batch, heads, rows)
        kept_max, kept_sum, known = self._tables()
        kept_max[where], kept_sum[where], known[where] = row_max, row_sum, torch.tensor(True)

    def _where(self, batch: Index, heads: Index, rows: Index) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries as an index of the tables."""
        texts, numbers, queries = (positions(index, self.query.device) for index in (batch, heads, rows))
        return texts[:, None, None], numbers[:, None], queries

    def _tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return (row maxima, row sums, whether they are known), each (B, H, L)."""
        if self._kept is None:
            dtype, shape = dtype_of(self.query, self.key), self.query.shape[:3]
            maxima = torch.zeros(shape, dtype=dtype, device=self.query.device)
            self._kept = maxima, torch.zeros_like(maxima), torch.zeros_like(maxima, dtype=torch.bool)
        return self._kept
