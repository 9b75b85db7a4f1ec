"""Convert an attention call to page data: queries, keys, score rule, and the row maximum and row sum of each query.

Maxima and sums are computed from the stored (rounded) numbers, so that the displayed rows sum to 1. Every weight
computed from the stored numbers is compared with the trace's weight, a few rows at a time.

Every mask becomes a band of positions, or the runs of keys that each query may attend to, found a few rows at a time.
A bias becomes one number per distance between query and key (T5, ALiBi), one per key, or all its numbers if there are
few enough. A short form is used only if it reproduces every number of the bias.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.masks import Mask
from regard.attention.scores import ScoreRule
from regard.capture.interventions.names import Part
from regard.errors import RegardError
from regard.web.numbers import Data, NumberStore

CPU = torch.device("cpu")
BAND = 1 << 22  # cells of a mask or bias read at once
DENSE = 1 << 22  # maximum numbers of a bias without a shorter form
RUNS = 1 << 24  # maximum runs of keys in a call's mask
BLOCK = 1 << 22  # weights of all heads compared at once
CELLS = 256  # per side of the finest overview
OVERVIEWS = {"overview": (CELLS, 1024), "small": (32, 256)}  # (cells per side, largest size without an overview)
NOTHING = -1e30  # replaces a sink score of -inf, which JSON lacks
CODES = 65535  # the largest code of an overview cell


def mask_data(mask: Mask | None, heads: int, length: int, size: int, numbers: NumberStore) -> Data | None:
    """Return the page's data for a call's mask, as a band or as runs of keys. None if no key is masked."""
    simple = None if mask is None else mask.simplified(length, size)
    if simple is None:
        return None
    if simple.only_band:
        return {"kind": "band", "low": simple.low, "high": simple.high}
    masks = heads if simple.by_head else 1
    counts, starts, ends = [np.zeros(1, np.int64)], [], []
    total, step = 0, max(1, BAND // max(1, size))
    for head in range(masks):
        for row in range(0, length, step):
            rows = slice(row, min(row + step, length))
            per_row, first, last = _runs_of_allowed_keys(simple, head, rows, size)
            counts.append(per_row)
            starts.append(first)
            ends.append(last)
            total += len(first)
            if total > RUNS:
                raise RegardError(f"the mask allows keys in more than {RUNS:,} runs, which is too many for a page")
        if head < masks - 1:
            counts.append(np.zeros(1, np.int64))  # the next head begins where this head ends
    first = np.concatenate(counts).cumsum().reshape(masks, length + 1)
    return {
        "kind": "runs",
        "heads": masks,
        "first": numbers.add(first.astype(np.int32)),
        "starts": numbers.add(np.concatenate([np.empty(0, np.int32), *starts]).astype(np.int32)),
        "ends": numbers.add(np.concatenate([np.empty(0, np.int32), *ends]).astype(np.int32)),
    }


def bias_data(bias: Float[Tensor, "1 #H #L #S"] | None, length: int, size: int, numbers: NumberStore) -> Data | None:
    """Return the page's data for a call's bias, in the shortest form that has all its numbers. None without bias."""
    if bias is None or not bool(bias.any()):
        return None
    values = bias[0].detach().float().cpu()
    heads = values.shape[0]
    bands = values.split(max(1, BAND // values.shape[2]), 1)
    if values.shape[1] == 1 or all(torch.equal(rows, values[:, :1].expand_as(rows)) for rows in bands):
        keys = values[:, 0].expand(heads, size)
        return {"kind": "keys", "heads": heads, "values": numbers.add(keys.contiguous())}
    values = values.expand(heads, length, size)
    offsets = page_bias_by_offset(values)
    if offsets is not None:
        return {"kind": "offsets", "heads": heads, "values": numbers.add(offsets)}
    if values.numel() > DENSE:
        raise RegardError(
            f"the bias has {values.numel():,} numbers that follow neither the distance of key and query nor the key, "
            f"but a page can have at most {DENSE:,}: leave that layer out, or use a shorter text"
        )
    return {"kind": "dense", "heads": heads, "values": numbers.add(values.contiguous())}


def page_bias_by_offset(bias: Float[Tensor, "h L S"]) -> Float[Tensor, "h offsets"] | None:
    """Return a bias (h, L, S) that depends only on j - i as (h, L + S - 1), indexed by j - i + L - 1. Else None."""
    _, length, size = bias.shape
    if not length or not size:
        return bias.new_zeros(len(bias), max(0, length + size - 1))
    step = max(1, BAND // size)
    for row in range(1, length, step):
        rows = bias[:, row : row + step]
        above = bias[:, row - 1 : row - 1 + rows.shape[1]]
        if not torch.equal(rows[:, :, 1:], above[:, :, :-1]):
            return None
    return torch.cat([bias[:, 1:, 0].flip(1), bias[:, 0]], 1).contiguous()


def score_rule_for_page(rule: ScoreRule) -> ScoreRule:
    """Return a score rule as a page stores it, with bias and sinks in float32 on the CPU.

    Some models add their mask to the scores, so a bias of -inf becomes part of the mask.
    """
    bias = None if rule.bias is None else rule.bias.detach().float().cpu()
    sinks = None if rule.sinks is None else rule.sinks.detach().float().cpu()
    mask = None if rule.mask is None else rule.mask.to(CPU)
    forbidden = None if bias is None else bias.isneginf()
    if bias is not None and forbidden is not None and bool(forbidden.any()):
        bias = bias.masked_fill(forbidden, 0)
        same = bool((forbidden == forbidden[:, :1]).all())
        mask = (mask or Mask()) & Mask(dense=(~(forbidden[:, :1] if same else forbidden),))
    return ScoreRule(rule.scale, rule.softcap, bias, mask, sinks)


def _runs_of_allowed_keys(mask: Mask, head: int, rows: slice, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how many runs of allowed keys each query has, the first key of each run, and its (exclusive) end."""
    tile = mask.tile(slice(0, 1), slice(head, head + 1), rows, slice(0, size), CPU)
    allowed = np.zeros((rows.stop - rows.start, size + 2), np.int8)
    allowed[:, 1:-1] = 1 if tile is None else tile[0, 0].expand(len(allowed), size).numpy()
    change = np.diff(allowed, axis=1)
    row, first = np.nonzero(change == 1)
    return np.bincount(row, minlength=len(allowed)), first, np.nonzero(change == -1)[1]


@dataclass(frozen=True)
class CallName:
    """The identity of a call: its layer, its number among the calls of that layer and stack, and its texts.

    queries, keys: indices of the page's texts. alone: whether it is the layer's only call. part: the stack, for an
    encoder-decoder. path: the name of a call that has no trace.
    """

    layer: int
    nth: int
    queries: int
    keys: int
    alone: bool = True
    part: Part | None = None
    path: str = ""

    def data(self, weights: AttentionMap) -> Data:
        """Return the page's data on the call's name, texts and shape, without weights. weights: its map (H, L, S)."""
        return {
            "name": str(self), "layer": self.layer, "nth": self.nth,
            "part": "cross" if self.part == "cross" else "self",  # self-attention of encoder or decoder is "self"
            "queries": self.queries, "keys": self.keys, "heads": weights.shape[0], "key_heads": weights.key.shape[1],
            "width": weights.query.shape[-1], "scale": float(weights.rule.scale), "softcap": weights.rule.softcap,
            "ablated": [],  # an ablated head still attends: its weights are not 0, its output is
        }  # fmt: skip

    def __str__(self) -> str:
        if self.path:
            return self.path
        nth = "" if self.alone else f", call {self.nth}"
        return f"layer {self.layer}{nth}" + (f", {self.part}" if self.part else "")


def call_data(
    weights: AttentionMap,
    name: CallName,
    numbers: NumberStore,
    *,
    norms: Float[Tensor, "H S"] | None = None,
    head_numbers: Sequence[int] | None = None,
) -> Data:
    """Return the page's data for a call's attention map (H, L, S). Arrays are added to the page's store `numbers`.

    A page computes exp(score - row maximum) / row sum. Weights without queries and keys are therefore stored as a bias
    of log weights, with row maxima of 0 and row sums of 1, whatever their actual sums.
    """
    heads, length, size = weights.shape
    scored = weights if weights.given is None else _map_of_log_weights(weights.given, name)
    query, key = scored.query[0], scored.key[0]
    for role, tensor in (("queries", query), ("keys", key)):
        if not bool(tensor.isfinite().all()):
            raise RegardError(f"{name}: its {role} hold infinite numbers or NaN, which a page cannot show")
    query_data, page_query = numbers.add_vectors(query)
    key_data, page_key = numbers.add_vectors(key)
    rule = score_rule_for_page(scored.rule)
    rounded = AttentionMap(page_query[None], page_key[None], rule, offset=weights.offset, ndim=3)
    if weights.given is None:
        row_max, row_sum = rounded.row_max_sum()
        difference = largest_difference_on_page(weights, rounded)
    else:
        row_max, row_sum = torch.zeros(heads, length), torch.ones(heads, length)
        assert scored.rule.bias is not None
        difference = float((scored.rule.bias.exp() - weights.given).abs().max()) if length and size else 0.0
    if not math.isfinite(difference):
        raise RegardError(f"{name}: its weights hold NaN, which a page cannot show")
    try:
        mask = mask_data(rule.mask, heads, length, size, numbers)
        bias = bias_data(rule.bias, length, size, numbers)
    except RegardError as error:
        raise RegardError(f"{name}: {error}") from None
    data: Data = {
        "head_numbers": None if head_numbers is None else list(head_numbers), "query": query_data, "key": key_data,
        "row_max": numbers.add(row_max.float()), "row_sum": numbers.add(row_sum.float()), "mask": mask, "bias": bias,
        "sinks": None if rule.sinks is None else rule.sinks.clamp_min(NOTHING).tolist(), "difference": difference,
        "norms": None if norms is None else numbers.add(norms), **({} if weights.given is None else {"given": True}),
    }  # fmt: skip
    return name.data(scored) | data | overviews_data(weights, numbers)


def _map_of_log_weights(weights: Float[Tensor, "1 H L S"], name: CallName) -> AttentionMap:
    """Return an attention map whose bias is the logarithm of these weights (1, H, L, S)."""
    if bool((weights < 0).any()):
        raise RegardError(f"{name}: its weights are below 0, which a page cannot show")
    _, heads, length, size = weights.shape
    query, key = torch.zeros(1, heads, length, 1), torch.zeros(1, 1, size, 1)
    return AttentionMap(query, key, ScoreRule(1.0, bias=weights.cpu().float().log()), ndim=3)


def largest_difference_on_page(weights: AttentionMap, rounded: AttentionMap) -> float:
    """Return the largest absolute difference between the weights of two maps (H, L, S), NaN if a weight is NaN.

    Keys that the mask's band hides from a block of rows are skipped, because their weights are 0 in both.
    """
    heads, length, size = weights.shape
    if not length or not size:
        return 0.0
    largest, mask = 0.0, rounded.rule.mask
    together = max(1, BLOCK // (length * size))  # heads compared at once
    step = max(1, min(1024, BLOCK // size))
    if mask is not None and mask.key_range(0, min(step, length), size) != (0, size):
        weights.row_max_sum()  # cached: otherwise each block with only some keys would compute it again
    for head in range(0, heads, together):
        for start in range(0, length, step):
            stop = min(start + step, length)
            first, last = (0, size) if mask is None else mask.key_range(start, stop, size)
            if first == last:
                continue
            region = slice(head, head + together), slice(start, stop), slice(first, last)
            difference = float((weights[region].cpu() - rounded[region]).abs_().max())
            if math.isnan(difference):
                return difference
            largest = max(largest, difference)
    return largest


def overviews_data(weights: AttentionMap, numbers: NumberStore) -> Data:
    """Return the page's overviews of an attention map, or None for those that the map is too small for.

    "overview": the mean weight of each cell. "small": the largest of these means in each of its larger cells.
    """
    _, length, size = weights.shape
    data: Data = dict.fromkeys(OVERVIEWS)
    pooled: Tensor | None = None
    for kind, (side, tokens) in OVERVIEWS.items():
        if not length or not size or max(length, size) <= tokens:
            continue
        if pooled is None:
            pooled = weights.pooled(min(CELLS, length), min(CELLS, size)).cpu().double()
        rows, cols = min(side, length), min(side, size)
        cells = torch.nn.functional.adaptive_max_pool2d(pooled, (rows, cols))
        largest = cells.amax((1, 2))
        share = cells / largest.clamp_min(torch.finfo(torch.float64).tiny)[:, None, None]
        codes = (share.clamp(0, 1).sqrt() * CODES).round().numpy().astype(np.uint16)
        data[kind] = {"rows": rows, "cols": cols, "values": numbers.add(codes), "largest": largest.tolist()}
    return data
