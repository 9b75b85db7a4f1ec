"""The attention matrix, lazily: any region costs its own size, statistics one blockwise pass in O(L + S) memory."""

import math
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention import map_file, region_scores
from regard.attention.indexing import parse
from regard.attention.kernels import statistics
from regard.attention.map_inputs import MapInputs
from regard.attention.map_statistics import MapStatistics, Progress, StatisticsRequest
from regard.attention.masks import Index
from regard.attention.row_sums import RowSums
from regard.attention.scores import ScoreRule, score_tile, tile_budget, valid_rows
from regard.attention.softmax import finite_max, sink_column, sink_share
from regard.memory import require_memory

HELPS = "ask for a smaller region, or for statistics of all of it: top(), received(), pooled(), statistics()"


class AttentionMap(MapInputs):
    """Weights (B, H, L, S) of one attention call; without the leading axes where the call had none.

    `m[b, h, 10:20, :]` is an exact dense region in fp32 or better, detached and before dropout. Nothing of size L × S
    exists until it is asked for. Row maxima and row sums are computed once, from the scores that regions are read from.
    """

    def __init__(
        self,
        query: Float[Tensor, "B H L D"],
        key: Float[Tensor, "B G S D"],
        rule: ScoreRule,
        *,
        offset: int | None = None,
        ndim: int = 4,
        row_max_sum: tuple[Float[Tensor, "B H L"], Float[Tensor, "B H L"]] | None = None,
    ) -> None:
        """Keep query, key and rule by reference. offset: position of query 0 among the keys, None for cross-attention.

        ndim: how many of the axes (B, H, L, S) to show, counted from the right; the others have size 1.
        row_max_sum: each query's (row maximum, row sum) from a kernel: a start for statistics, which check them.
        """
        super().__init__(query, key, rule, offset=offset, ndim=ndim)
        self._attached = query, key, rule
        self._from_kernel = row_max_sum
        self._rows = RowSums(self.query, self.key, self.rule)

    @classmethod
    def of(cls, inputs: MapInputs) -> "AttentionMap":
        """The map that is computed from these inputs."""
        return cls(inputs.query, inputs.key, inputs.rule, offset=inputs.offset, ndim=inputs.ndim)

    def __repr__(self) -> str:
        return f"AttentionMap(shape={self.shape}, dtype={self.dtype}, device={str(self.device)!r})"

    def __getitem__(self, index: Any) -> Float[Tensor, "..."]:
        """The weights of a region, numpy-style. Raises IndexError and TypeError as a tensor would."""
        return self._region(index, self._weights)

    @property
    def scores(self) -> "ScoreView":
        """The same matrix before the softmax: `m.scores[...]`, -inf where the mask forbids."""
        return ScoreView(self)

    def dense(self, *, differentiable: bool = False) -> Float[Tensor, "..."]:
        """All weights as one tensor, on purpose: memory L × S. differentiable: exact, and gradients flow through it."""
        if not differentiable:
            return self[...]
        query, key, rule = self._attached
        spot = self._everything()
        require_memory(
            3 * math.prod(self._full_shape) * self.dtype.itemsize, self.device, "dense(differentiable=True)", HELPS
        )
        scores = score_tile(query, key, rule, *spot)
        empty = (scores == -torch.inf).all(-1, keepdim=True)
        sink = sink_column(rule, spot[1], scores.dtype)
        if sink is not None:
            scores = torch.cat([scores, sink[..., None].expand(*scores.shape[:-1], 1)], -1)
        weights = torch.where(empty, 0.0, torch.where(empty, 0.0, scores).softmax(-1))
        return self._shown(weights[..., : self._full_shape[3]])

    def row_max_sum(self) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Compute (row maximum, row sum) of each query, (B, H, L): a weight is exp(score - maximum) / sum.

        Sinks are included; (-inf, 0) where there is no key and no sink.
        """
        row_max, row_sum = self._rows.of(*self._everything()[:3])
        rounded = row_max.to(self.dtype)
        row_sum = row_sum * torch.exp(finite_max(row_max) - finite_max(rounded.to(row_max.dtype)))
        return self._shown(rounded), self._shown(row_sum.to(self.dtype))

    @property
    def sink_share(self) -> Float[Tensor, "..."]:
        """The part of each query's attention that its head's sink takes, (B, H, L): weights + sink share sum to 1."""
        row_max, row_sum = self._rows.of(*self._everything()[:3])
        share = sink_share(self.rule, slice(0, self._full_shape[1]), row_max, row_sum)
        return self._shown((torch.zeros_like(row_max) if share is None else share).to(self.dtype))

    @property
    def valid(self) -> Bool[Tensor, "..."]:
        """(B, H, L): False where a query may attend to no key, whether or not there is a sink that takes all."""
        return self._shown(valid_rows(self.query, self.key, self.rule))

    def top(self, k: int) -> tuple[Float[Tensor, "..."], Int[Tensor, "..."]]:
        """(values, keys) of each query's k largest weights, (B, H, L, min(k, S)); ties go to the smaller key.

        Where a query may attend to fewer keys, the rest is weight 0 and key -1. Raises ValueError unless k >= 1.
        """
        found = self._compute(StatisticsRequest(top=k))
        return self._one(found.values), self._one(found.keys)

    def entropy(self) -> Float[Tensor, "..."]:
        """Entropy of each query's distribution in nats, (B, H, L); a sink's share counts as one more outcome."""
        return self._one(self._compute(StatisticsRequest(entropy=True)).entropy)

    def received(self) -> Float[Tensor, "..."]:
        """What each key gets from all queries, (B, H, S): the sum of its column, one for every query head.

        Heads that share a key head are not joined. What sinks take is missing: each head's sum is the number of queries
        that attend to something, less the sum of its sink shares.
        """
        return self._one(self._compute(StatisticsRequest(received=True)).received)

    def distance(self) -> Float[Tensor, "..."]:
        """Mean |i - j| in positions, weighted by the weights on keys, (B, H, L), one for every query head.

        A sink has no position: its share is left out and the weights on keys count as if they summed to 1. 0 for a
        query that attends to no key.

        Raises:
            ValueError: cross-attention, where positions are not of one sequence.
        """
        return self._one(self._compute(StatisticsRequest(distance=True, offset=self._known_offset())).distance)

    def pooled(self, rows: int, cols: int) -> Float[Tensor, "..."]:
        """The matrix as a picture of at most rows × cols cells, each its true mean weight, uneven cells too."""
        return self._one(self._compute(StatisticsRequest(pooled=(rows, cols))).pooled)

    def statistics(
        self, top: int = 8, pooled: tuple[int, int] = (256, 256), progress: Progress | None = None
    ) -> MapStatistics:
        """All statistics, computed now, in one pass; distance is None where positions are not known (cross-attention).

        progress: called while the pass runs, from any thread, with the share of it that was just done.
        """
        where = self.offset is not None
        found = self._compute(StatisticsRequest(top, True, True, where, pooled, self.offset or 0), progress)
        shown = {name: None if t is None else self._shown(t) for name, t in vars(found).items()}
        return MapStatistics(**shown)

    def save(self, file: str | Path) -> None:
        """Write the map to a safetensors file, whole or not at all. It keeps query, key and rule: O(L + S), not L × S.

        Raises:
            ValueError: the mask is a function of positions and too large to be written out.
        """
        map_file.save(self, file)

    @staticmethod
    def load(file: str | Path, *, verify: bool = False) -> "AttentionMap":
        """The map that `save` wrote, on the CPU. Raises RegardError where the file is no map, in one line.

        Its tensors are held against their digests when they are first read; verify: now.
        """
        return AttentionMap.of(map_file.load(file, verify=verify))

    def _everything(self) -> tuple[slice, slice, slice, slice]:
        b, h, length, size = self._full_shape
        return slice(0, b), slice(0, h), slice(0, length), slice(0, size)

    def _shown(self, full: Tensor) -> Tensor:
        return full.reshape(full.shape[4 - self.ndim :])

    def _one(self, full: Tensor | None) -> Tensor:
        assert full is not None
        return self._shown(full)

    def _compute(self, request: StatisticsRequest, progress: Progress | None = None) -> MapStatistics:
        if request.top is not None and request.top < 1:
            raise ValueError(f"top: k is {request.top}, it needs to be 1 or more")
        if request.pooled is not None and min(request.pooled) < 1:
            rows, cols = request.pooled
            raise ValueError(f"pooled: rows and cols are {rows} and {cols}, both need to be 1 or more")
        return statistics.compute(self.query, self.key, self.rule, request, self._from_kernel, progress)

    def _known_offset(self) -> int:
        if self.offset is None:
            raise ValueError(
                "distance: queries and keys are of different sequences (cross-attention), so |i - j| means nothing; "
                "give attend() an offset where they are of one"
            )
        return self.offset

    def _region(self, index: Any, read: Any) -> Tensor:
        needed, finish = parse(index, self.shape, self.device)
        hidden = 4 - self.ndim
        spot = [slice(0, 1)] * hidden + needed
        return read(*spot)[(0,) * hidden + finish]

    def _weights(self, batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
        return self._blocks(batch, heads, rows, cols, self._weights_tile)

    def _scores(self, batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
        return self._blocks(batch, heads, rows, cols, lambda *spot: self._exact(*spot).to(self.dtype))

    def _exact(self, batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
        return region_scores.scores(self.query, self.key, self.rule, batch, heads, rows, cols)

    def _weights_tile(self, batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
        scores = self._exact(batch, heads, rows, cols)
        if cols == slice(0, self._full_shape[3]) and scores.shape[-1] > 0:
            row_max, row_sum = self._rows.of_scores(scores, batch, heads, rows)
        else:
            row_max, row_sum = self._rows.of(batch, heads, rows)
        return region_scores.weights(scores, row_max, row_sum, self.dtype)

    def _blocks(self, batch: Index, heads: Index, rows: Index, cols: Index, tile: Any) -> Tensor:
        """Fill a region a band of rows at a time, so that beside the answer only one band of scratch exists."""
        sizes = [
            len(range(*x.indices(n))) if isinstance(x, slice) else len(x)
            for x, n in zip((batch, heads, rows, cols), self._full_shape, strict=True)
        ]
        if math.prod(sizes) <= tile_budget(self.query):
            return tile(batch, heads, rows, cols)
        what = f"a region of {' × '.join(map(str, sizes))} weights"
        require_memory(math.prod(sizes) * self.dtype.itemsize, self.device, what, HELPS)
        answer = torch.empty(sizes, dtype=self.dtype, device=self.device)
        step = max(1, tile_budget(self.query) // max(1, sizes[0] * sizes[1] * sizes[3]))
        for start in range(0, sizes[2], step):
            stop = min(start + step, sizes[2])
            band = slice(rows.start + start, rows.start + stop) if isinstance(rows, slice) else rows[start:stop]
            answer[:, :, start:stop] = tile(batch, heads, band, cols)
        return answer


class ScoreView:
    """`m.scores[...]`: the scores of a region, numpy-style, in fp32 or better; -inf where the mask forbids."""

    def __init__(self, of: AttentionMap) -> None:
        self._map = of

    @property
    def shape(self) -> tuple[int, ...]:
        """The map's own shape."""
        return self._map.shape

    def __getitem__(self, index: Any) -> Float[Tensor, "..."]:
        return self._map._region(index, self._map._scores)
