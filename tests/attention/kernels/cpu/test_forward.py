"""The forward on CPUs against the definition: every mask and layout, any block size, extremes, repeatability."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.attention import masks, reference
from regard.attention.kernels import dispatch, matmul
from regard.attention.kernels.cpu import forward, tiles
from regard.attention.scores import ScoreRule, row_max_sum
from tests.attention.cases import Case, cases, check, naive, random, working

SINGLE = (torch.float32, torch.bfloat16, torch.float16)


def rule_of(case: Case) -> ScoreRule:
    return regard.attend(case.query, case.key, case.value, **case.options).weights.rule


def compare(query: Tensor, key: Tensor, value: Tensor, rule: ScoreRule, **options: object) -> None:
    """Output and logsumexp, each within twice the error of the plain computation."""
    case = Case(query, key, value, options)
    output, logsumexp = forward.forward(query, key, value, rule)[:2]
    right, plain, exact = case.oracle(), naive(case, query.dtype), naive(case, working(query.dtype))
    assert output.dtype == query.dtype
    assert logsumexp.dtype == torch.float32
    check("output", output, plain.output, right.output, case, query.dtype)
    check("logsumexp", logsumexp, exact.logsumexp, right.logsumexp, case, torch.float32)
    assert torch.equal(logsumexp == -torch.inf, right.logsumexp == -torch.inf)


@settings(max_examples=80, deadline=None)
@given(cases(SINGLE), st.integers(1, 20), st.integers(1, 20))
def test_every_kind_of_call_in_any_block_size(case: Case, rows: int, cols: int) -> None:
    kept, rule = (tiles.ROWS, tiles.COLS), rule_of(case)
    try:
        tiles.ROWS, tiles.COLS = rows, cols
        done = forward.forward(case.query, case.key, case.value, rule)
    finally:
        tiles.ROWS, tiles.COLS = kept
    right, dtype = case.oracle(), case.query.dtype
    check("output", done.output, naive(case, dtype).output, right.output, case, dtype)
    exact = naive(case, torch.float32)
    check("logsumexp", done.logsumexp, exact.logsumexp, right.logsumexp, case, torch.float32)
    assert torch.equal(done.logsumexp == -torch.inf, right.logsumexp == -torch.inf)
    everything = (slice(0, n) for n in case.query.shape[:3])
    row_max, row_sum = row_max_sum(case.query, case.key, rule, *everything)
    kept_max, kept_sum = done.row_max_sum
    assert torch.equal(kept_max == -torch.inf, row_max == -torch.inf)
    assert torch.equal(kept_sum == 0, row_sum == 0)


@pytest.mark.parametrize(
    ("options", "mask", "dtype"),
    [
        ({}, None, torch.float32),
        ({"causal": True}, masks.causal(0), torch.float16),
        ({"window": (100, 3), "offset": 37}, masks.window(100, 3, 37), torch.bfloat16),
        ({"window": (5, None), "offset": 1290}, masks.window(5, None, 1290), torch.float32),  # the last see nothing
    ],
)
def test_tiles_of_full_size(options: dict, mask: masks.Mask | None, dtype: torch.dtype) -> None:
    query, key, value = (
        random(n, 1, 2, size, w, dtype=dtype) for n, size, w in ((0, 701, 37), (1, 1301, 37), (2, 1301, 5))
    )
    compare(query, key, value, ScoreRule(37**-0.5, mask=mask), **({"offset": 0} | options))


@pytest.mark.parametrize("width", [1, 2, 3, 64, 127, 512])
def test_widths(width: int) -> None:
    query, key = random(0, 1, 4, 67, width, dtype=torch.float32), random(1, 1, 2, 131, width, dtype=torch.float32)
    compare(query, key, random(2, 1, 2, 131, 513 - width, dtype=torch.float32), ScoreRule(width**-0.5))


@pytest.mark.parametrize("strength", [0.0, 1e2, 1e4, 3e4])
@pytest.mark.parametrize("sinks", [None, torch.tensor([-1e4, 1e4])])
def test_scores_of_thousands(strength: float, sinks: Tensor | None) -> None:
    query, key = random(0, 1, 2, 61, 3, dtype=torch.float32) * strength, random(1, 1, 2, 97, 3, dtype=torch.float32)
    compare(query, key, key, ScoreRule(1.0, sinks=sinks), scale=1.0, **({} if sinks is None else {"sinks": sinks}))


@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("what", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_comes_through_as_in_torch(where: str, what: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "COLS", 16)
    given = {name: random(n, 1, 1, 53, 8, dtype=torch.float32) for n, name in enumerate(("query", "key", "value"))}
    given[where][0, 0, 20, 3] = what
    output, logsumexp = forward.forward(**given, rule=ScoreRule(0.3))[:2]
    line = given["query"] @ given["key"].mT * 0.3
    assert torch.equal(output.isnan(), (line.softmax(-1) @ given["value"]).isnan())
    torch.testing.assert_close(output, line.softmax(-1) @ given["value"], equal_nan=True)
    finite = line.isfinite().all(-1)
    torch.testing.assert_close(logsumexp[finite], line.logsumexp(-1)[finite])


@pytest.mark.parametrize("product", [matmul.onednn, matmul.blas])
def test_repeats_bitwise_with_any_number_of_threads(product: matmul.Product, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "product", lambda: product)
    query, key, value = (random(n, 1, 3, 1100, 16, dtype=torch.float32) for n in range(3))
    count = torch.get_num_threads()
    first = forward.forward(query, key, value, ScoreRule(0.25, mask=masks.causal()))
    try:
        for threads in (count, 1, 2, 3, 7):
            torch.set_num_threads(threads)
            again = forward.forward(query, key, value, ScoreRule(0.25, mask=masks.causal()))
            assert torch.equal(first[0], again[0])
            assert torch.equal(first[1], again[1])
    finally:
        torch.set_num_threads(count)


def test_inside_inference_mode_and_autocast() -> None:
    query, key, value = (random(n, 1, 2, 600, 16, dtype=torch.float32) for n in range(3))
    right = forward.forward(query, key, value, ScoreRule(0.25))
    with torch.inference_mode(), torch.autocast("cpu"):
        inside = forward.forward(query.clone(), key, value, ScoreRule(0.25))
    assert torch.equal(right[0], inside[0])


def test_the_rule_s_function_is_asked_for_tiles_only() -> None:
    seen: list[int] = []

    def near(i: Tensor, j: Tensor) -> Tensor:
        seen.append(i.shape[0] * j.shape[1])
        return (i - j).abs() < 900

    query = random(0, 1, 1, 1500, 8, dtype=torch.float32)
    compare(query, query, query, ScoreRule(8**-0.5, mask=masks.function(near)), window=(899, 899))
    assert max(seen) <= tiles.ROWS * tiles.COLS


def test_gradients_where_no_other_kernel_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "CPU_SCORES_IN_ALL", 1)
    monkeypatch.setattr(dispatch, "CPU_KEYS", 1)
    tensors = [random(n, 1, 2, 70, 8, dtype=torch.float32).requires_grad_() for n in range(3)]
    sinks, bias = torch.zeros(2, requires_grad=True), random(4, 70, 70, dtype=torch.float32).requires_grad_()
    upstream = random(3, 1, 2, 70, 8, dtype=torch.float32)
    leaves = (*tensors, sinks, bias)
    result = regard.attend(*tensors, softcap=5.0, sinks=sinks, bias=bias, causal=True)
    assert result.kernel == "blockwise-cpu"
    got = torch.autograd.grad(result.output, leaves, upstream)
    right = reference.attention(*tensors, softcap=5.0, sinks=sinks, bias=bias, causal=True)
    for ours, exact in zip(got, torch.autograd.grad(right.output, leaves, upstream.double()), strict=True):
        torch.testing.assert_close(ours, exact.to(ours.dtype), atol=1e-5, rtol=1e-4)
