"""Output and all statistics in one sweep against the definition: every rule, any strip size, ties, NaN."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention import masks, reference
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import dispatch
from regard.attention.kernels import statistics as two_walks
from regard.attention.kernels.cpu import forward, forward_statistics
from regard.attention.kernels.statistics import with_distances_beside_sinks
from regard.attention.map_statistics import KernelResult, Statistics
from regard.attention.scores import ScoreRule
from tests.attention.cases import Case, cases, check, naive, random
from tests.attention.test_map_statistics import compare

STRIPS = ("MIN_STRIP_ROWS", "MAX_STRIP_ROWS", "STRIP", "STRIP_SLICED", "BAND")
SINGLE = (torch.float32, torch.bfloat16, torch.float16)


def swept(case: Case, seen: AttentionMap, top: int = 8, parts: tuple[int, int] = (256, 256)) -> KernelResult:
    assert forward_statistics.fits(case.query, case.key, seen.rule)
    wanted = Statistics(top, parts)
    done = forward_statistics.compute(case.query, case.key, case.value, seen.rule, wanted, seen.offset)
    assert done.statistics is not None
    found = with_distances_beside_sinks(case.query, case.key, seen.rule, done.statistics, seen.offset)
    return done._replace(statistics=found)


def hold(case: Case, seen: AttentionMap, done: KernelResult, top: int, parts: tuple[int, int]) -> None:
    """Every result and statistic, within twice the error of the plain computation in float32."""
    right, plain = case.oracle(), naive(case, torch.float32)
    assert done.output.dtype == case.query.dtype
    rounding = {torch.bfloat16: 2**-8, torch.float16: 2**-11}.get(case.query.dtype, 0.0)
    off = (done.output.double() - right.output).abs() - rounding * right.output.abs()
    check("output", right.output + off.clamp(min=0.0).nan_to_num(0.0), plain.output, right.output, case, torch.float32)
    check("logsumexp", done.logsumexp, plain.logsumexp, right.logsumexp, case, torch.float32)
    assert done.statistics is not None
    compare(case, seen, done.statistics, top, parts)


@settings(max_examples=60, deadline=None)
@given(
    cases(SINGLE),
    st.tuples(st.integers(1, 6), st.integers(6, 20), st.integers(1, 300), st.integers(1, 300), st.integers(1, 9)),
    st.integers(1, 20),
    st.tuples(*[st.integers(1, 20)] * 2),
)
def test_every_kind_of_call_in_any_strip_size(
    case: Case, strips: tuple[int, ...], top: int, parts: tuple[int, int]
) -> None:
    seen = regard.attend(case.query, case.key, case.value, **case.options).weights
    if not forward.fits(case.query, case.key, case.value, seen.rule):
        return
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(STRIPS, strips, strict=True):
            patch.setattr(forward_statistics, name, size)
        done = forward_statistics.compute(
            case.query, case.key, case.value, seen.rule, Statistics(top, parts), seen.offset
        )
    hold(case, seen, done, top, parts)


def additive(*shape: int) -> torch.Tensor:
    return random(9, *shape, dtype=torch.float32)


RULES: dict[str, dict[str, Any]] = {
    "full": {"offset": 0},
    "window": {"window": (100, 3), "offset": 37},
    "the end of the keys": {"window": (5, None), "offset": 690},
    "sinks, softcap": {"sinks": torch.tensor([2.0, -3.0]), "softcap": 3.0, "offset": 0},
    "bias": {"bias": additive(1, 2, 301, 701) * 20, "offset": 0},
    "padding, causal": {"mask": (torch.arange(701) < 600)[None, None, None], "causal": True},
}


@pytest.mark.parametrize(
    ("rule", "dtype"),
    [
        *((rule, torch.float32) for rule in ("full", "the end of the keys", "sinks, softcap", "padding, causal")),
        ("window", torch.bfloat16),
        ("bias", torch.float16),
    ],
)
def test_strips_of_full_size(rule: str, dtype: torch.dtype) -> None:
    query, key, value = (random(n, 1, 2, size, 37, dtype=dtype) for n, size in ((0, 301), (1, 701), (2, 701)))
    case = Case(query, key, value, RULES[rule])
    seen = regard.attend(query, key, value, **case.options).weights
    for top, parts in ((8, (256, 256)), (40, (7, 5))):
        hold(case, seen, swept(case, seen, top, parts), top, parts)


@pytest.mark.parametrize("levels", [1, 2, 5, 40])
@pytest.mark.parametrize("top", [3, 16, 20])
def test_ties_go_to_the_smaller_key(levels: int, top: int) -> None:
    key = torch.randint(levels, (1, 1, 1331, 1), generator=torch.Generator().manual_seed(levels)).float()
    query = torch.tensor([1.0, -1.0, 0.0]).view(1, 1, 3, 1)
    rule = ScoreRule(1.0, mask=masks.function(lambda i, j: (i + j) % 7 != 0))
    done = forward_statistics.compute(query, key, key, rule, Statistics.only(top=top), 0)
    exact = reference.attention(query, key, key, mask=rule.mask.materialise(1, 1, 3, 1331, key.device), scale=1.0)
    assert torch.equal(done.statistics.keys, reference.top(exact.scores, top))


@pytest.mark.parametrize("size", [40, 700])
@pytest.mark.parametrize("mask", [None, masks.causal(), masks.window(9, 2)])
@pytest.mark.parametrize("what", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_comes_through_as_in_torch(what: float, mask: masks.Mask | None, size: int) -> None:
    query, key, value = (random(n, 1, 2, size, 8, dtype=torch.float32) for n in range(3))
    query[0, 0, 11, 2] = what
    key[0, 1, 5, 3] = what
    wanted, rule = Statistics(4, (7, 7)), ScoreRule(0.3, mask=mask)
    ours = forward_statistics.compute(query, key, value, rule, wanted, 0)
    output = forward.forward(query, key, value, rule).output
    torch.testing.assert_close(ours.output, output, equal_nan=True, atol=1e-5, rtol=1e-5)
    theirs = two_walks.blockwise(query, key, rule, wanted, 0)
    for name in ("values", "keys", "entropy", "received", "distance", "pooled"):
        own, right = getattr(ours.statistics, name), getattr(theirs, name)
        torch.testing.assert_close(own, right, equal_nan=True, atol=1e-5, rtol=1e-5)


def test_repeats_bitwise() -> None:
    query, key, value = (random(n, 1, 3, 1100, 16, dtype=torch.float32) for n in range(3))
    rule, wanted = ScoreRule(0.25, mask=masks.causal()), Statistics(5, (64, 64))
    first, again = (forward_statistics.compute(query, key, value, rule, wanted, 0) for _ in range(2))
    assert torch.equal(first.output, again.output)
    for name in ("values", "keys", "entropy", "received", "distance", "pooled"):
        assert torch.equal(getattr(first.statistics, name), getattr(again.statistics, name))


@pytest.fixture
def sweeps(monkeypatch: pytest.MonkeyPatch) -> list[Statistics]:
    """What each sweep was asked for."""
    asked: list[Statistics] = []
    compute = forward_statistics.compute

    def count(*arguments: Any) -> KernelResult:
        asked.append(arguments[4])
        return compute(*arguments)

    monkeypatch.setattr(forward_statistics, "compute", count)
    return asked


def test_attend_chooses_it_from_a_million_scores_on(sweeps: list[Statistics]) -> None:
    query, key = (random(n, 1, 2, 1024, 8, dtype=torch.float32) for n in range(2))
    wanted = Statistics(3, (2, 2))
    done = dispatch.compute_with_statistics(query, key, key, ScoreRule(0.3), 0.0, wanted, 0)
    assert sweeps == [wanted]
    assert done.kernel == "one-sweep-cpu"
    short = dispatch.compute_with_statistics(query[:, :, :9], key, key, ScoreRule(0.3), 0.0, wanted, 0)
    assert sweeps == [wanted]
    assert short.statistics is not None
    torch.testing.assert_close(short.statistics.entropy, done.statistics.entropy[:, :, :9])
    query.requires_grad_()
    trained = regard.attend(query, key, key, statistics=wanted)
    assert sweeps == [wanted]
    assert trained.output.requires_grad
    assert not trained.weights.received().requires_grad
