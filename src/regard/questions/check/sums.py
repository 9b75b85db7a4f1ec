"""Check what is computed from a trace against the whole it is of: contributions, attributions, statistics of maps."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.map_statistics import Statistics
from regard.errors import InexactError, RegardError
from regard.explain.causes.contributions import TOLERANCE, contributions
from regard.explain.wording import numbered
from regard.questions.attribution.direct import TOLERANCE as OF_OUTCOME
from regard.questions.check.claims import WEIGHTS, Apart, Claim, claim
from regard.questions.check.passes import Read
from regard.trace.layer_subset import call_numbers
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    pass

CELLS = (7, 11)  # rows and columns of the picture that is held against the whole matrix
TOP = 5  # largest weights of each query that are


def contributions_add_up(read: Read) -> Iterator[Claim]:
    """Check that the parts of three vectors, in every layer, add up to what the model computed.

    Of a trace made anew: from its third on a model's attention outputs are found by the modules that gave them before.
    """
    trace = read.model.trace(**read.reading.asked)
    worst = Apart(0.0)
    for side in trace.sides:
        for part in (None, "cross") if side.cross else (None,):
            for layer, nth in call_numbers(side.cross if part else side.attention):
                if nth:
                    continue
                for place in sorted({0, (len(side.tokens) - 1) // 2, len(side.tokens) - 1}):
                    with _half_is_refused(read):
                        found = contributions(side, place, layer, part=part)
                    sums = found.sources().sum(0) + found.residual + found.bias
                    apart = float((sums - found.vector).norm() / found.vector.norm().clamp(min=1e-30))
                    where = f"layer {layer}{', cross-attention' if part else ''} at {numbered(side.tokens, place)}"
                    worst = max(worst, Apart.of(max(apart, found.error), where), key=lambda each: each.difference)
    yield claim("contributions", "contributions add up to the vector", read.reading.name, worst, TOLERANCE)


def attributions_add_up(read: Read) -> Iterator[Claim]:
    """Check that what is written directly adds up to the logit of the likeliest token, or to a cosine."""
    trace = read.trace
    last = trace.sides[-1]
    place = len(last.tokens) - 1
    asked: dict[str, Any] = {"toward": last.contextual[0] - last.contextual[place] + 1.0}
    if last.logits is not None:
        asked = {"token": int(last.logits[place].argmax())}
    with _half_is_refused(read):
        found = read.model.attribution(trace, place, **asked)
    apart = Apart.of(found.error, f"{found.outcome}: {found.value:.3g}")
    yield claim("attribution", "attribution adds up to the outcome", read.reading.name, apart, OF_OUTCOME)


def statistics_are_of_the_weights(read: Read) -> Iterator[Claim]:
    """Check what a map answers without its matrix, and what is computed with the pass, against the whole matrix."""
    kept = read.model.trace(**read.reading.asked, statistics=Statistics(TOP, CELLS))
    for how, trace in (("what a map says", read.trace), ("what a pass counts", kept)):
        worst = Apart(0.0)
        for where, weights in _maps(trace):
            for name, apart in _statistics_apart(weights):
                worst = max(worst, Apart.of(apart, f"{name} of {where}"), key=lambda each: each.difference)
        yield claim("statistics", f"{how} is the matrix's", read.reading.name, worst, WEIGHTS, half=read.half)


@contextmanager
def _half_is_refused(read: Read) -> Iterator[None]:
    """Take sums that are off as a refusal where the model computes in half precision: its own are as far off."""
    try:
        yield
    except InexactError as error:
        if read.half:
            raise RegardError(str(error)) from None
        raise


def _maps(trace: Trace | PairTrace) -> Iterator[tuple[str, AttentionMap]]:
    for side in trace.sides:
        for name, maps in (("", side.attention), (" of the cross-attention", side.cross)):
            for call in call_numbers(maps):
                yield f"layer {call[0]}{name}", maps[call]


def _statistics_apart(weights: AttentionMap) -> Iterator[tuple[str, float]]:
    """How far each statistic of a map is from the same of its dense weights, in float64, of the number of queries."""
    dense = weights.dense().double().cpu()  # (H, L, S)
    queries = dense.shape[1]
    values, keys = (each.cpu() for each in weights.top(TOP))
    expected = dense.topk(min(TOP, dense.shape[2]), -1).values
    yield "the largest weights", _largest(values - expected)
    yield "their keys", _largest((dense.gather(-1, keys.clamp(min=0)) - values)[keys >= 0])
    yield "received", _largest(weights.received().cpu() - dense.sum(1)) / queries
    rest = (1 - dense.sum(-1, keepdim=True)).clamp(min=0)
    shares = torch.cat([dense, torch.where(rest > WEIGHTS, rest, 0.0)], -1)
    entropy = -(shares * shares.clamp(min=1e-300).log()).sum(-1)
    yield "entropy", _largest(weights.entropy().cpu() - entropy) / max(1.0, float(entropy.max()))
    rows, cols = (min(n, size) for n, size in zip(CELLS, dense.shape[1:], strict=True))
    yield "the picture", _largest(weights.pooled(*CELLS).cpu() - _cells(dense, rows, cols))


def _cells(dense: Tensor, rows: int, cols: int) -> Tensor:
    """The mean of the weights in each cell, (H, rows, cols)."""
    sizes = ((dense.shape[1], rows), (dense.shape[2], cols))
    down, across = ([n * size // parts for n in range(parts + 1)] for size, parts in sizes)
    cells = [[dense[:, a:b, c:d].mean((1, 2)) for c, d in pairwise(across)] for a, b in pairwise(down)]
    return torch.stack([torch.stack(row, -1) for row in cells], 1)


def _largest(apart: Tensor) -> float:
    return float(apart.abs().max()) if apart.numel() else 0.0
