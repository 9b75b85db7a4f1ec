"""Compute scores one tile at a time. All code that reads the attention matrix uses this module.

    scores = softcap(scale · query @ keyᵀ) + bias, -inf where masked

A `ScoreRule` holds the scale, softcap, bias, mask and sinks. `score_tile` computes any region of the scores in fp32 or
better. `query_blocks` and `key_blocks` cut the matrix into tiles.
`softmax_weights` converts scores to weights, and `row_max_sum` computes these sums block by block:

    row_max = max(scores)
    row_sum = sum(exp(scores - row_max)), including a sink's score
    weight  = exp(score - row_max) / row_sum

If the maximum rises from m to m', the sum so far is multiplied by exp(m - m') (Milakov & Gimelshein 2018, "Online
normalizer calculation for softmax"). A row without any allowed key has row maximum -inf, row sum 0 and weights 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.masks import Index, Mask, crop_axes, select

# On a CPU, a tile should fit into the cache: 2^20 fp32 scores are 4 MiB. GPUs need larger tiles.
TILE_ROWS, TILE_COLS = 512, 1024
TILE_SCORES = {"cpu": 1 << 20, "other": 1 << 25}


@dataclass(frozen=True, eq=False)
class ScoreRule:
    """How scores are computed from queries and keys.

    bias: (B|1, H|1, L|1, S|1) added to the scaled, capped scores. sinks: (H,) scores that join the denominator only.
    row_bias: (B|1, H|1, L|1, 1) subtracted from the bias, set only by `subtract_row_bias`. It doesn't change weights.
    """

    scale: float
    softcap: float | None = None
    bias: Float[Tensor, "#B #H #L #S"] | None = None
    mask: Mask | None = None
    sinks: Float[Tensor, " H"] | None = None
    row_bias: Float[Tensor, "#B #H #L 1"] | None = None

    def tile_bias(self, batch: Index, heads: Index, rows: Index, cols: Index, dtype: torch.dtype) -> Tensor:
        """Return the bias of a tile, minus `row_bias`. Each axis has the tile's size or 1."""
        assert self.bias is not None
        bias = select(self.bias, batch, heads, rows, cols).to(dtype)
        return bias if self.row_bias is None else bias - select(self.row_bias, batch, heads, rows, cols).to(dtype)

    @property
    def only_band(self) -> bool:
        """Return whether there is no bias and the mask is at most a band of positions."""
        return self.bias is None and (self.mask is None or self.mask.only_band)

    def detached(self) -> "ScoreRule":
        """Return the same rule with detached tensors."""
        if self.bias is None and self.sinks is None:
            return self
        bias = None if self.bias is None else self.bias.detach()
        return replace(self, bias=bias, sinks=None if self.sinks is None else self.sinks.detach())

    def crop(self, batch: int, rows: slice, cols: slice) -> "ScoreRule":
        """Return the rule for one text of a batch, with queries and keys renumbered from 0."""
        if self.bias is None and self.mask is None:
            return self
        bias = None if self.bias is None else crop_axes(self.bias, batch, rows, cols)
        mask = None if self.mask is None else self.mask.crop(batch, rows, cols)
        mask = None if mask is None else mask.simplified(rows.stop - rows.start, cols.stop - cols.start)
        return replace(self, bias=bias, mask=mask)

    def to(self, device: torch.device) -> "ScoreRule":
        """Return the same rule with its tensors on another device."""
        bias = None if self.bias is None else self.bias.to(device)
        sinks = None if self.sinks is None else self.sinks.to(device)
        return replace(self, bias=bias, sinks=sinks, mask=None if self.mask is None else self.mask.to(device))


# Only larger biases than FAR are worth subtracting. Below FARTHEST, float64 can still distinguish a query's scores.
FAR, FARTHEST = 16.0, 1e9


def subtract_row_bias(query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule) -> ScoreRule:
    """Return the rule with each query's largest allowed bias in `row_bias`. Weights stay the same, scores are near 0.

    float32 rounds a score of 10,000 by 5e-4, which loses digits of query · key. The rule is returned unchanged if no
    bias is large or if it has sinks, whose scores are the same for all queries.
    """
    bias = rule.bias
    if bias is None or rule.sinks is not None or not bool(_is_far(bias).any()):
        return rule
    bias = bias.detach().to(torch.promote_types(bias.dtype, torch.float32))
    if rule.mask is None:
        largest = bias.amax(-1, keepdim=True)
    else:  # only over allowed keys, one tile at a time
        largest = bias.new_full((*query.shape[:3], 1), -torch.inf)
        for b, h, r in query_blocks(query, key):
            for cols in key_blocks(query, key, rule, b, h, r):
                tile, allowed = select(bias, b, h, r, cols), rule.mask.tile(b, h, r, cols, query.device)
                tile = tile if allowed is None else torch.where(allowed, tile, -torch.inf)
                largest[b, h, r] = torch.maximum(largest[b, h, r], tile.amax(-1, keepdim=True))
    is_far = _is_far(largest)
    return replace(rule, row_bias=torch.where(is_far, largest, 0.0)) if bool(is_far.any()) else rule


def _is_far(bias: Tensor) -> Tensor:
    return (bias.abs() > FAR) & (bias.abs() < FARTHEST)


def working_dtype(*tensors: Tensor) -> torch.dtype:
    """Return the dtype in which scores are computed: float64 for float64, else float32."""
    return torch.float64 if any(t.dtype == torch.float64 for t in tensors) else torch.float32


def score_tile(
    query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule, batch: Index, heads: Index,
    rows: Index, cols: Index, dtype: torch.dtype | None = None,
) -> Float[Tensor, "b h r c"]:  # fmt: skip
    """Compute the scores of the region batch × heads × rows × cols, -inf where masked."""
    dtype = dtype or working_dtype(query)
    q = query[batch][:, heads][:, :, rows]  # (b, h, r, D)
    k = key_heads_of_index(key, query.shape[1], heads)[batch][:, :, cols]  # (b, g, c, D), h % g == 0
    if dtype != query.dtype:  # contiguous heads: products of interleaved heads take five times as long
        q, k = (tensor.to(dtype, memory_format=torch.contiguous_format) for tensor in (q, k))
    scores = grouped_product(q * rule.scale, k.mT)
    if rule.softcap is not None:
        scores = rule.softcap * torch.tanh(scores / rule.softcap)
    if rule.bias is not None:
        scores = scores + rule.tile_bias(batch, heads, rows, cols, dtype)
    allowed = None if rule.mask is None else rule.mask.tile(batch, heads, rows, cols, query.device)
    return scores if allowed is None else torch.where(allowed, scores, -torch.inf)


def valid_rows(
    query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule
) -> Bool[Tensor, "B H L"]:
    """Compute which queries have a key that mask and bias allow. This needs no product of query and key."""
    shape, size, mask = query.shape[:3], key.shape[2], rule.mask or Mask()
    if mask.only_band and rule.bias is None:
        low, high = -shape[2] if mask.low is None else mask.low, size if mask.high is None else mask.high
        i = torch.arange(shape[2], device=query.device)
        return ((i + high >= 0) & (i + low < size) & (low <= high and size > 0)).expand(shape)
    parts = [*mask.dense, *([] if rule.bias is None else [rule.bias])]
    parts += [] if mask.keys is None else [mask.keys[:, None, None]]
    batch, heads = (max((t.shape[n] for t in parts), default=1) if not mask.removed else shape[n] for n in range(2))
    queries = query[:batch, :heads]  # the mask is the same for the others
    valid = torch.zeros(queries.shape[:3], dtype=torch.bool, device=query.device)
    for b, h, r in query_blocks(queries, key[:, :1]):
        for cols in key_blocks(queries, key, rule, b, h, r):
            allowed = mask.tile(b, h, r, cols, query.device)
            if rule.bias is not None:
                by_bias = select(rule.bias, b, h, r, cols) != -torch.inf
                allowed = by_bias if allowed is None else allowed & by_bias
            valid[b, h, r] |= torch.ones((), dtype=torch.bool) if allowed is None else allowed.any(-1)
    return valid.expand(shape)


def key_heads_of_index(grouped: Tensor, heads: int, index: Index) -> Tensor:
    """Return the key or value heads (B, g, S, ·) for the indexed query heads: a view if it covers whole groups."""
    groups = grouped.shape[1]
    share = heads // groups
    if isinstance(index, slice):
        start, stop = index.start or 0, heads if index.stop is None else index.stop
        if stop - start == 1:
            return grouped[:, start // share : start // share + 1]
        if start % share == 0 and stop % share == 0:
            return grouped[:, start // share : stop // share]
        index = torch.arange(start, stop, device=grouped.device)
    return grouped[:, index // share]


def grouped_product(a: Float[Tensor, "b h r x"], b: Float[Tensor, "b g x c"]) -> Float[Tensor, "b h r c"]:
    """Compute a @ b if consecutive heads of a share one head of b, without repeating b."""
    batch, heads, rows, inner = a.shape
    groups = b.shape[1]
    if groups == heads:
        return matmul(a, b)
    joined = matmul(a.reshape(batch, groups, heads // groups * rows, inner), b)
    return joined.reshape(batch, heads, rows, b.shape[-1])


def matmul(a: Float[Tensor, "*n r x"], b: Float[Tensor, "*n x c"]) -> Float[Tensor, "*n r c"]:
    """Compute a @ b in their own dtype. Autocast would use half precision and is disabled."""
    if not torch.is_autocast_enabled(a.device.type):
        return a @ b
    with torch.autocast(a.device.type, enabled=False):
        return a @ b


def key_blocks(query: Tensor, key: Tensor, rule: ScoreRule, batch: Index, heads: Index, rows: Index) -> Iterator[slice]:
    """Yield blocks of the keys that these queries may attend to. Each block fits into a tile.

    query, key, rule: of the whole call. batch, heads, rows: the texts, heads and queries.
    """
    first, last = 0, key.shape[2]
    if rule.mask is not None and isinstance(rows, slice):
        first, last = rule.mask.key_range(rows.start, rows.stop, last)
    lines = (
        _positions_in_tile_index(batch, query.shape[0])
        * _positions_in_tile_index(heads, query.shape[1])
        * _positions_in_tile_index(rows, query.shape[2])
    )
    step = max(TILE_COLS, score_tile_budget(query) // max(1, lines))
    for start in range(first, last, step):
        yield slice(start, min(start + step, last))


def query_blocks(query: Tensor, key: Tensor) -> Iterator[tuple[slice, slice, slice]]:
    """Yield blocks (batch, heads, rows) that cover all queries in order. A tile fits a block with TILE_COLS keys."""
    batch, heads, length = query.shape[:3]
    if 0 in (batch, heads, length):
        return
    lines = max(1, score_tile_budget(query) // max(1, min(TILE_COLS, key.shape[2])))
    rows = max(1, min(length, TILE_ROWS, lines))
    share = max(1, heads // max(1, key.shape[1]))  # a block has whole groups of heads, or a single head
    head_step = min(heads, max(1, lines // rows // share * share))
    batch_step = min(batch, max(1, lines // (heads * rows))) if head_step == heads else 1
    for b in range(0, batch, batch_step):
        for h in range(0, heads, head_step):
            for r in range(0, length, rows):
                yield (
                    slice(b, min(b + batch_step, batch)),
                    slice(h, min(h + head_step, heads)),
                    slice(r, min(r + rows, length)),
                )


def score_tile_budget(tensor: Tensor) -> int:
    """Return the number of scores that a tile may hold on this tensor's device."""
    return TILE_SCORES["cpu" if tensor.device.type == "cpu" else "other"]


def _positions_in_tile_index(index: Index, size: int) -> int:
    return len(range(*index.indices(size))) if isinstance(index, slice) else len(index)


def row_max_sum(
    query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule, batch: Index, heads: Index,
    rows: Index, dtype: torch.dtype | None = None, known: Sequence[Float[Tensor, "b h r c"]] = (),
) -> tuple[Float[Tensor, "b h r"], Float[Tensor, "b h r"]]:  # fmt: skip
    """Compute (row maximum, row sum) of queries over all keys, including sinks.

    query, key, rule, batch, heads, dtype: as in `score_tile`. rows: the queries. known: their scores, if computed.
    """
    shape = query[batch][:, heads][:, :, rows].shape[:3]
    row_max = query.new_full(shape, -torch.inf, dtype=dtype or working_dtype(query))
    row_sum = torch.zeros_like(row_max)
    blocks = () if known else key_blocks(query, key, rule, batch, heads, rows)
    for scores in known or (score_tile(query, key, rule, batch, heads, rows, cols, dtype) for cols in blocks):
        new_max = torch.maximum(row_max, scores.amax(-1))
        in_block = torch.exp(scores - finite_max(new_max)[..., None]).sum(-1)
        row_sum = row_sum * softmax_rescaling(row_max, new_max) + in_block
        row_max = new_max
    sink = sink_column(rule, heads, row_max.dtype)
    return (row_max, row_sum) if sink is None else add_sink_to_rows(row_max, row_sum, sink)


def softmax_weights(scores: Float[Tensor, "b h r c"], row_max: Tensor, row_sum: Tensor) -> Float[Tensor, "b h r c"]:
    """Compute the weights of a region from its scores."""
    return torch.exp(scores - finite_max(row_max)[..., None]) / torch.where(row_sum == 0, 1.0, row_sum)[..., None]


def softmax_rescaling(old_max: Tensor, new_max: Tensor) -> Tensor:
    """Compute the factor from a sum of exp(score - old_max) to one with new_max; 0 if nothing was summed yet."""
    return torch.where(old_max == -torch.inf, 0.0, torch.exp(old_max - finite_max(new_max)))


def finite_max(row_max: Tensor) -> Tensor:
    """Replace -inf by 0, so that the maximum of a fully masked row can be subtracted."""
    return torch.where(row_max == -torch.inf, 0.0, row_max)


def sink_column(rule: ScoreRule, heads: Index, dtype: torch.dtype) -> Float[Tensor, "1 h 1"] | None:
    """Return the sinks of a tile's heads, broadcastable to (b, h, r); None without sinks."""
    return None if rule.sinks is None else rule.sinks[heads].to(dtype)[None, :, None]


def add_sink_to_rows(row_max: Tensor, row_sum: Tensor, sink: Tensor) -> tuple[Tensor, Tensor]:
    """Include a sink's score in row maxima and row sums. A query that can't attend to any key has only the sink."""
    new_max = torch.maximum(row_max, sink)
    with_sink = row_sum * softmax_rescaling(row_max, new_max) + torch.exp(sink - finite_max(new_max))
    return new_max, torch.where(new_max == -torch.inf, 0.0, with_sink)


def sink_share(rule: ScoreRule, heads: Index, row_max: Tensor, row_sum: Tensor) -> Tensor | None:
    """Compute the fraction of each query's attention to its head's sink, (b, h, r); None without sinks."""
    sink = sink_column(rule, heads, row_max.dtype)
    return None if sink is None else torch.where(row_sum == 0, 0.0, torch.exp(sink - row_max) / row_sum)
