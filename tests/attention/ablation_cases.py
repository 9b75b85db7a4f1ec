"""Calls with edges cut, drawn at random, and how they are compared with a dense mask in the cuts' place."""

from collections.abc import Callable
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.attention import reference
from regard.attention.ablation import EdgeAblation, ablating
from regard.attention.reference import Reference
from tests.attention.cases import Case, as_from_a_file, cases, check, naive, working

Told = list[dict[str, list[int] | None]]  # one dictionary a cut
AXES = ("batch", "heads", "queries", "keys")


@st.composite
def cut_cases(draw: Callable[..., Any], **limits: Any) -> tuple[Case, Told]:
    """A call, and one to three products of sets of its texts, heads, queries and keys."""
    case = draw(cases(**limits))
    shape = (*case.query.shape[:3], case.key.shape[2])

    def some(size: int) -> list[int] | None:
        return draw(st.one_of(st.none(), st.lists(st.integers(0, size - 1), min_size=1, max_size=3)))

    told = [{axis: some(n) for axis, n in zip(AXES, shape, strict=True)} for _ in range(draw(st.integers(1, 3)))]
    return case, told


def dense(case: Case, told: Told) -> Tensor:
    """The edges that are left, (B, H, L, S)."""
    left = torch.ones(*case.query.shape[:3], case.key.shape[2], dtype=torch.bool)
    for cut in told:
        spots = [range(n) if cut[axis] is None else cut[axis] for axis, n in zip(AXES, left.shape, strict=True)]
        left[torch.meshgrid(*(torch.tensor(list(spot)) for spot in spots), indexing="ij")] = False
    return left


def masked(case: Case, left: Tensor) -> Case:
    """The same call with a dense mask in the cut's place, as the oracle is told."""
    told = dict(case.told)
    told["mask"] = left if told.get("mask") is None else left & told["mask"]
    return Case(case.query, case.key, case.value, told)


def attend_cut(case: Case, told: Told) -> regard.Attention:
    with ablating([EdgeAblation(**cut) for cut in told]):
        return regard.attend(case.query, case.key, case.value, **case.options)


def compare(case: Case, told: Told) -> None:
    """Output, logsumexp, weights, every statistic and a map that was packed, against the dense mask."""
    expected = masked(case, dense(case, told))
    right = expected.oracle()
    result = attend_cut(case, told)
    seen, dtype = result.weights, working(case.query.dtype)
    plain = naive(expected, dtype)
    assert torch.equal(result.valid, right.valid)
    assert torch.equal(seen.scores[...] == -torch.inf, right.scores == -torch.inf)
    check("output", result.output, naive(expected, case.query.dtype).output, right.output, case, case.query.dtype)
    check("logsumexp", result.logsumexp, plain.logsumexp, right.logsumexp, case, dtype)
    check("weights", seen.dense(), plain.weights, right.weights, case, dtype)
    check("sink share", seen.sink_share, plain.sink_share, right.sink_share, case, dtype)
    _compare_statistics(seen, plain, right, case, dtype)
    again = as_from_a_file(seen)
    check("packed", again.dense(), plain.weights, right.weights, case, dtype)


def _compare_statistics(
    seen: regard.AttentionMap, plain: Reference, right: Reference, case: Case, dtype: torch.dtype
) -> None:
    parts = min(3, seen.shape[2]), min(2, seen.shape[3])
    found = seen.statistics(top=2, pooled=parts)
    best = right.weights.sort(-1, descending=True).values[..., :2]
    check("top", found.values, plain.weights.sort(-1, descending=True).values[..., :2], best, case, dtype)
    entropy = [reference.entropy(of.weights, of.sink_share) for of in (plain, right)]
    check("entropy", found.entropy, *entropy, case, dtype)
    received = [reference.received(of.weights) for of in (plain, right)]
    check("received", found.received, *received, case, dtype)
    check("pooled", found.pooled, *(reference.pooled(of.weights, *parts) for of in (plain, right)), case, dtype)
