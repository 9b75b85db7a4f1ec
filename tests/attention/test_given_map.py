"""Given weights: read bit for bit, with statistics of the weights as they are, and the same after a file."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.attention import masks
from regard.attention.attention_map import AttentionMap
from regard.attention.given_map import key_heads_of_queries, of_heads, one_head
from regard.attention.masks import Edges, Mask
from regard.attention.scores import ScoreRule
from regard.errors import RegardError


@st.composite
def weights(draw: st.DrawFn) -> Tensor:
    """Weights of 2 to 4 axes, some of them 0, as a softmax leaves them or with rows that sum to something else."""
    lead = draw(st.lists(st.integers(1, 3), max_size=2))
    length, size = draw(st.integers(0, 6)), draw(st.integers(1, 6))
    torch.manual_seed(draw(st.integers(0, 999)))
    dtype = draw(st.sampled_from([torch.float64, torch.float32, torch.bfloat16]))
    made = torch.randn(*lead, length, size).softmax(-1) * (torch.rand(*lead, length, size) > 0.3)
    return (made * draw(st.sampled_from([1.0, 0.7, 1.9]))).to(dtype)


@settings(max_examples=60)
@given(weights())
def test_regions_are_the_weights_to_the_bit(made: Tensor) -> None:
    seen = regard.AttentionMap.of_weights(made)
    wide = made if made.dtype == torch.float64 else made.float()
    assert seen.shape == made.shape
    assert torch.equal(seen[...], wide)
    assert torch.equal(seen[..., ::2, -1], wide[..., ::2, -1])
    assert torch.equal(seen.dense(), wide)
    assert np.array_equal(np.asarray(seen), wide.numpy())
    assert torch.equal(seen.valid, (made != 0).any(-1))
    assert torch.equal(torch.as_tensor(seen), wide)


@settings(max_examples=60)
@given(weights(), st.integers(1, 7), st.integers(0, 2))
def test_statistics_are_those_of_the_weights(made: Tensor, k: int, offset: int) -> None:
    seen, exact = regard.AttentionMap.of_weights(made, offset), made.double()
    length, size = made.shape[-2:]
    values, keys = seen.top(k)
    ordered, order = exact.sort(dim=-1, descending=True, stable=True)
    assert torch.equal(values.double(), ordered[..., :k])
    assert torch.equal(keys, order.masked_fill(ordered == 0, -1)[..., :k])
    fractions = exact / exact.sum(-1, keepdim=True).clamp_min(1e-300)
    torch.testing.assert_close(seen.entropy().double(), torch.special.entr(fractions).sum(-1), atol=2e-6, rtol=0)
    torch.testing.assert_close(seen.received().double(), exact.sum(-2), atol=2e-6, rtol=0)
    apart = (torch.arange(length)[:, None] + offset - torch.arange(size)).abs()
    torch.testing.assert_close(seen.distance().double(), (fractions * apart).sum(-1), atol=2e-5, rtol=0)
    if length > 1:
        top = exact[..., : length // 2, :].mean((-1, -2))
        torch.testing.assert_close(seen.pooled(2, 1)[..., 0, 0].double(), top, atol=1e-6, rtol=0)
    whole = seen.statistics(top=k, pooled=(3, 3))
    assert whole.values is not None
    assert torch.equal(whole.values, values)
    assert whole.sink_share is None


def test_a_large_map_is_read_in_bands() -> None:
    made = torch.randn(1, 2, 1100, 1000).softmax(-1)
    done: list[float] = []
    found = regard.AttentionMap.of_weights(made).statistics(progress=done.append)
    assert found.received is not None
    torch.testing.assert_close(found.received, made.sum(-2))
    torch.testing.assert_close(found.entropy, torch.special.entr(made).sum(-1))
    assert len(done) > 1
    assert sum(done) == pytest.approx(1)


def test_negative_weights_have_no_entropy_and_no_mean_distance() -> None:
    seen = regard.AttentionMap.of_weights(torch.tensor([[0.5, -0.25, 0.75], [0.2, 0.3, 0.5], [0.0, 0.0, 0.0]]))
    assert seen.entropy().isnan().tolist() == [True, False, False]
    assert seen.distance().isnan().tolist() == [True, False, False]
    assert seen.entropy()[2] == 0
    assert seen.top(3)[1].tolist() == [[2, 0, 1], [2, 1, 0], [-1, -1, -1]]
    assert seen.received().tolist() == pytest.approx([0.7, 0.05, 1.25])


def test_parts_of_a_map() -> None:
    made = torch.rand(2, 4, 5, 6, dtype=torch.float64)
    seen = regard.AttentionMap.of_weights(made, 1)
    cropped = seen.crop(1, slice(2, 5), slice(1, 6))
    assert torch.equal(cropped[...], made[1, :, 2:5, 1:6])
    assert cropped.offset == 2
    assert torch.equal(seen.rows(slice(0, 1), torch.tensor([4, 0])), made[:1, :, [4, 0]])
    assert torch.equal(one_head(seen, 2)[...], made[:, 2:3])
    assert torch.equal(of_heads(seen, [3, 0], 0)[...], made[:, [3, 0]])
    assert seen.to(torch.float32)[...].dtype == torch.float32
    assert repr(seen) == "GivenMap(shape=(2, 4, 5, 6), dtype=torch.float64, device='cpu')"
    attached = made.clone().requires_grad_()
    assert regard.AttentionMap.of_weights(attached).dense(differentiable=True).requires_grad
    region = seen[0, 0]
    region.zero_()
    assert torch.equal(seen[...], made)


def test_positions_are_known_only_for_square_maps_or_with_an_offset() -> None:
    assert regard.AttentionMap.of_weights(torch.ones(3, 3)).offset == 0
    with pytest.raises(ValueError, match="distance: queries and keys are in different sequences"):
        regard.AttentionMap.of_weights(torch.ones(3, 4)).distance()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("offset", [None, 2])
def test_a_file_gives_the_same(tmp_path: Path, dtype: torch.dtype, offset: int | None) -> None:
    seen = regard.AttentionMap.of_weights((torch.randn(2, 3, 4) * 0.4).to(dtype), offset)
    seen.save(tmp_path / "map")
    again = regard.AttentionMap.load(tmp_path / "map")
    assert (again.shape, again.dtype, again.offset) == (seen.shape, seen.dtype, offset)
    assert torch.equal(again[...], seen[...])


@pytest.mark.parametrize("name", ["query", "key", "rule", "scores", "row_max_sum", "sink_share"])
def test_what_needs_scores_is_refused(name: str) -> None:
    seen = regard.AttentionMap.of_weights(torch.ones(2, 2))
    with pytest.raises(RegardError, match=f"{name}: this map has weights that a program computed"):
        getattr(seen, name)()
    with pytest.raises(AttributeError):
        seen.nothing  # noqa: B018


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_wrong_weights_are_named() -> None:
    with pytest.raises(TypeError, match="weights: got list, expected a torch tensor"):
        regard.AttentionMap.of_weights([[1.0]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"weights: got shape \(3,\), expected 2 to 4 axes"):
        regard.AttentionMap.of_weights(torch.ones(3))
    with pytest.raises(TypeError, match=r"weights: got torch\.int64"):
        regard.AttentionMap.of_weights(torch.ones(2, 2, dtype=torch.long))


H, L = 6, 5
torch.manual_seed(0)
RULES = [
    ScoreRule(1.0),
    ScoreRule(1.0, bias=torch.randn(1, H, L, L), sinks=torch.randn(H)),
    ScoreRule(1.0, bias=torch.randn(1, 1, L, L), mask=masks.dense(torch.rand(1, H, L, L) > 0.3)),
    ScoreRule(1.0, mask=Mask(high=0, removed=(Edges((1, H, L, L), heads=(1, 4), keys=(0,)),))),
    ScoreRule(1.0, mask=Mask(removed=(Edges((1, H, L, L), queries=(2,), keys=(0,)),))),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("groups", [1, 3, 6])
def test_chosen_heads_have_their_weights(rule: ScoreRule, groups: int) -> None:
    weights = AttentionMap(torch.randn(1, H, L, 4), torch.randn(1, groups, L, 4), rule, offset=0, ndim=3)
    for heads in ([0], [1, 4], [2, 3, 4], [0, 1, 2, 3, 4, 5], [5, 0]):
        few = of_heads(weights, heads, 2)
        assert few.shape == (len(heads), L, L)
        assert few.offset == 0
        torch.testing.assert_close(few.dense(), weights.dense()[heads])
        torch.testing.assert_close(few.sink_share, weights.sink_share[heads])
    torch.testing.assert_close(one_head(weights, 4).dense(), weights.dense()[4:5])
    with pytest.raises(IndexError, match="head 6 is out of range: the map has heads 0 to 5"):
        one_head(weights, 6)


def test_key_heads_are_as_few_as_equal_runs_can_share() -> None:
    assert key_heads_of_queries([0, 1, 2, 3], 6, 3) == [0, 1]
    assert key_heads_of_queries([0, 2], 6, 3) == [0, 1]
    assert key_heads_of_queries([0, 1, 2], 6, 3) == [0, 0, 1]
    assert key_heads_of_queries([4], 6, 3) == [2]


def test_all_heads_are_the_map_itself_and_one_that_is_not_there_is_named() -> None:
    weights = AttentionMap(torch.randn(1, H, L, 4), torch.randn(1, H, L, 4), ScoreRule(1.0), ndim=3)
    assert of_heads(weights, None, 2) is weights
    assert of_heads(weights, range(H), 2) is weights
    with pytest.raises(RegardError, match="head 6 does not exist: layer 2 has heads 0 to 5"):
        of_heads(weights, [0, 6], 2)
