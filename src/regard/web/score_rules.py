"""Say how scores come from queries and keys as a page's data has it: which keys a query may attend to, and the bias.

A mask of any kind becomes a band of positions, or the runs of keys that each query may attend to, found a few rows at a
time. A bias becomes one number for each distance of key and query (T5, ALiBi), one for each key, or where it is small
enough all its numbers; each form is checked to give every number of it.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.masks import Mask
from regard.attention.scores import ScoreRule
from regard.errors import RegardError
from regard.web.numbers import NumberStore

BAND = 1 << 22  # cells of a mask or a bias that are looked at at once
DENSE = 1 << 22  # numbers of a bias of no shorter form, up to which it is carried as it is
RUNS = 1 << 24  # runs of keys of one call, up to which its mask is carried

Data = dict[str, object]


def mask_data(mask: Mask | None, heads: int, length: int, size: int, numbers: NumberStore) -> Data | None:
    """Write a mask of a call; None where every query may attend to every key.

    heads, length, size: how many heads, queries and keys it has. numbers: of the page, which takes the tensors.
    """
    simple = None if mask is None else mask.simplified(length, size)
    if simple is None:
        return None
    if simple.only_band:
        return {"kind": "band", "low": simple.low, "high": simple.high}
    apart = heads if simple.by_head else 1
    counts, starts, ends = [np.zeros(1, np.int64)], [], []
    total, step = 0, max(1, BAND // max(1, size))
    for head in range(apart):
        for row in range(0, length, step):
            rows = slice(row, min(row + step, length))
            per_row, first, last = _mask_runs_for_page(simple, head, rows, size)
            counts.append(per_row)
            starts.append(first)
            ends.append(last)
            total += len(first)
            if total > RUNS:
                raise RegardError(f"the mask allows keys in more than {RUNS:,} runs, which is too many for a page")
        if head < apart - 1:
            counts.append(np.zeros(1, np.int64))  # where the next head begins, this one ends
    first = np.concatenate(counts).cumsum().reshape(apart, length + 1)
    return {
        "kind": "runs",
        "heads": apart,
        "first": numbers.add(first.astype(np.int32)),
        "starts": numbers.add(np.concatenate([np.empty(0, np.int32), *starts]).astype(np.int32)),
        "ends": numbers.add(np.concatenate([np.empty(0, np.int32), *ends]).astype(np.int32)),
    }


def bias_data(bias: Float[Tensor, "1 #H #L #S"] | None, length: int, size: int, numbers: NumberStore) -> Data | None:
    """Write a bias in the shortest form that has all its numbers.

    length, size: how many queries and keys it has. numbers: of the page, which takes the tensors.
    """
    if bias is None or not bool(bias.any()):
        return None
    own = bias[0].detach().float().cpu()
    heads = own.shape[0]
    bands = own.split(max(1, BAND // own.shape[2]), 1)
    if own.shape[1] == 1 or all(torch.equal(rows, own[:, :1].expand_as(rows)) for rows in bands):  # whatever the query
        keys = own[:, 0].expand(heads, size)
        return {"kind": "keys", "heads": heads, "values": numbers.add(keys.contiguous())}
    own = own.expand(heads, length, size)
    offsets = page_bias_by_offset(own)
    if offsets is not None:
        return {"kind": "offsets", "heads": heads, "values": numbers.add(offsets)}
    if own.numel() > DENSE:
        raise RegardError(
            f"the bias has {own.numel():,} numbers that follow neither the distance of key and query nor the key, "
            f"{DENSE:,} are the most for a page: leave that layer out, or give a shorter text"
        )
    return {"kind": "dense", "heads": heads, "values": numbers.add(own.contiguous())}


def page_bias_by_offset(bias: Float[Tensor, "h L S"]) -> Float[Tensor, "h offsets"] | None:
    """Return the numbers of a bias that depends on j - i alone, by j - i + L - 1; None where it depends on more."""
    _, length, size = bias.shape
    if not length or not size:
        return bias.new_zeros(len(bias), max(0, length + size - 1))
    step = max(1, BAND // size)
    for row in range(1, length, step):
        here = bias[:, row : row + step]
        above = bias[:, row - 1 : row - 1 + here.shape[1]]
        if not torch.equal(here[:, :, 1:], above[:, :, :-1]):
            return None
    return torch.cat([bias[:, 1:, 0].flip(1), bias[:, 0]], 1).contiguous()


def score_rule_for_page(rule: ScoreRule) -> ScoreRule:
    """Return the rule with the numbers that a page has: bias and sinks in float32, on the CPU.

    Where a bias is -inf it forbids, as models do whose mask is added to the scores: that becomes part of the mask.
    """
    bias = None if rule.bias is None else rule.bias.detach().float().cpu()
    sinks = None if rule.sinks is None else rule.sinks.detach().float().cpu()
    mask = None if rule.mask is None else rule.mask.to(torch.device("cpu"))
    forbidden = None if bias is None else bias.isneginf()
    if bias is not None and forbidden is not None and bool(forbidden.any()):
        bias = bias.masked_fill(forbidden, 0)
        same = bool((forbidden == forbidden[:, :1]).all())
        mask = (mask or Mask()) & Mask(dense=(~(forbidden[:, :1] if same else forbidden),))
    return ScoreRule(rule.scale, rule.softcap, bias, mask, sinks)


def _mask_runs_for_page(mask: Mask, head: int, rows: slice, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many runs each of some queries has, and the runs' first and last keys, the last ones exclusive."""
    tile = mask.tile(slice(0, 1), slice(head, head + 1), rows, slice(0, size), torch.device("cpu"))
    allowed = np.zeros((rows.stop - rows.start, size + 2), np.int8)
    allowed[:, 1:-1] = 1 if tile is None else tile[0, 0].expand(len(allowed), size).numpy()
    change = np.diff(allowed, axis=1)
    row, first = np.nonzero(change == 1)
    return np.bincount(row, minlength=len(allowed)), first, np.nonzero(change == -1)[1]
