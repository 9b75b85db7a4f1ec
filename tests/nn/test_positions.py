"""Positions: published figures, and what each kind promises."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from drawings.printed import printed
from regard.nn import positions
from regard.nn.positions import Alibi, Rotary


def normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_published_example() -> None:
    article = printed("contextual embeddings")["positional_encoding"]
    table, right = (torch.tensor(article[name]) for name in ("values", "example_output"))
    assert (positions.sinusoidal(5, 3) - table).abs().max() <= 0.0051
    x = torch.tensor(article["example_input"])
    assert (x + positions.sinusoidal(len(x), 3) - right).abs().max() <= 0.0101


def test_by_its_formula() -> None:
    table = positions.sinusoidal(11, 6, base=100.0).double()
    for position in range(11):
        for i in range(3):
            angle = torch.tensor(position / 100.0 ** (2 * i / 6))
            torch.testing.assert_close(table[position, 2 * i].float(), angle.sin())
            torch.testing.assert_close(table[position, 2 * i + 1].float(), angle.cos())


@pytest.mark.parametrize("width", [1, 3, 7, 401])
def test_of_an_odd_width_the_last_column_is_dropped(width: int) -> None:
    table = positions.sinusoidal(13, width)
    assert table.shape == (13, width)
    assert table.abs().max() <= 1
    assert torch.equal(table[:, 0], torch.arange(13.0).double().sin().float())
    angles = torch.arange(13.0).double() * 10000.0 ** -((width - 1) / width)
    assert torch.equal(table[:, -1], angles.sin().float())  # the column after it, its cosine, is gone


@settings(max_examples=40, deadline=None)
@given(st.sampled_from((2, 4, 10, 64)), st.integers(-50, 100_000), st.integers(-50, 50))
def test_a_shift_is_linear(width: int, start: int, shift: int) -> None:
    here = torch.arange(start, start + 7)
    before, after = positions.sinusoidal_at(here, width), positions.sinusoidal_at(here + shift, width)
    angle = positions.rotary_angles(torch.tensor([shift]), width)[0]
    turn = torch.zeros(width, width, dtype=torch.float64)
    for i in range(width // 2):
        cos, sin = angle[i].cos(), angle[i].sin()
        turn[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.stack([torch.stack([cos, -sin]), torch.stack([sin, cos])])
    torch.testing.assert_close(before @ turn, after, rtol=0, atol=1e-9)


LAYOUTS = st.sampled_from(positions.LAYOUTS)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 99), LAYOUTS, st.sampled_from((2, 4, 6)), st.integers(-1000, 100_000))
def test_rotary_scores_depend_on_the_offset_alone(seed: int, layout: str, width: int, shift: int) -> None:
    query, key = normal(seed, 2, 3, 5, 7), normal(seed + 1, 2, 3, 5, 7)

    def scores(start: int) -> torch.Tensor:
        angles = positions.rotary_angles(torch.arange(start, start + 5), width)
        return positions.rotate(query, angles, layout) @ positions.rotate(key, angles, layout).mT

    torch.testing.assert_close(scores(0), scores(shift), rtol=0, atol=1e-8)


@pytest.mark.parametrize("layout", positions.LAYOUTS)
def test_rotary_turns_its_pairs(layout: str) -> None:
    x = normal(0, 1, 1, 5, 6)
    turned = positions.rotate(x, positions.rotary_angles(torch.arange(5), 4), layout)
    pairs = [(0, 2), (1, 3)] if layout == "half" else [(0, 1), (2, 3)]
    for i, (a, b) in enumerate(pairs):
        angle = torch.arange(5) * 10000.0 ** (-2 * i / 4)
        right = torch.complex(x[..., a], x[..., b]) * torch.polar(torch.ones(5).double(), angle.double())
        torch.testing.assert_close(torch.complex(turned[..., a], turned[..., b]), right)
    assert torch.equal(turned[..., 4:], x[..., 4:])
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[..., 0, :], x[..., 0, :])


def test_rotary_in_low_precision_turns_in_float32() -> None:
    x = normal(0, 3, 5, 8)
    half = Rotary(8).rotate(x[None].bfloat16(), torch.arange(100_000, 100_005))
    assert half.dtype == torch.bfloat16
    exact = Rotary(8).rotate(x[None], torch.arange(100_000, 100_005))
    assert (half.double() - exact).abs().max() < 0.03


def test_positions_of_each_text_its_own() -> None:
    x, own = normal(0, 2, 3, 5, 4), torch.stack([torch.arange(5), torch.arange(5) + 7])
    turned = Rotary(4).rotate(x, own)
    torch.testing.assert_close(turned[1], Rotary(4).rotate(x, torch.arange(7, 12))[1])
    torch.testing.assert_close(positions.sinusoidal_at(own, 4)[1], positions.sinusoidal_at(own[1], 4))
    assert Alibi(3).bias(own, own).shape == (2, 3, 5, 5)


def test_published_slopes() -> None:
    assert positions.alibi_slopes(8).tolist() == [2.0**-n for n in range(1, 9)]
    assert positions.alibi_slopes(1).tolist() == [2.0**-8]
    root = [2 ** (-0.5 * n) for n in (1, 3, 5, 7)]
    assert positions.alibi_slopes(12).tolist() == pytest.approx([2.0**-n for n in range(1, 9)] + root)
    assert positions.alibi_slopes(6).tolist() == pytest.approx([2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3])


def test_alibi_falls_with_distance() -> None:
    bias = Alibi(2).bias(torch.tensor([3]), torch.arange(5))
    assert torch.equal(bias[:, 0], -torch.tensor([[2.0**-4], [2.0**-8]]) * torch.tensor([3.0, 2, 1, 0, 1]))


def test_compact_alibi_gives_the_same_causal_weights() -> None:
    here = torch.arange(40)
    hidden = here[:, None] < here
    scores = normal(0, 6, 40, 40)
    dense = (scores + Alibi(6).bias(here, here)).masked_fill(hidden, -torch.inf).softmax(-1)
    compact = Alibi(6, compact=True).bias(here, here)
    assert compact.shape == (6, 1, 40)
    torch.testing.assert_close((scores + compact).masked_fill(hidden, -torch.inf).softmax(-1), dense, rtol=0, atol=1e-6)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="width: got 5, expected an even number"):
        Rotary(5)
    with pytest.raises(ValueError, match="layout: got 'other', expected 'half' or 'interleaved'"):
        Rotary(4, layout="other")
    with pytest.raises(ValueError, match="angles: got 4 for pairs, but x has only 6"):
        positions.rotate(torch.zeros(5, 6), positions.rotary_angles(torch.arange(5), 8))
    with pytest.raises(ValueError, match="width: got 0, expected 1 or more"):
        positions.sinusoidal(3, 0)
    with pytest.raises(ValueError, match="heads: got 0, expected 1 or more"):
        Alibi(0)


def test_rotary_angles_are_kept_only_while_they_are_right() -> None:
    layer, x, places = positions.Rotary(4), torch.randn(2, 3, 5, 6), torch.arange(5)
    kept = layer.rotate(x, places)
    assert torch.equal(layer.rotate(x, places), kept)
    assert torch.equal(layer.rotate(x.double(), places), positions.rotate(x.double(), angles(places)))
    places += 1  # the same tensor says something else now
    assert torch.equal(layer.rotate(x, places), positions.rotate(x, angles(places)))
    assert torch.equal(layer.rotate(x, torch.arange(5)), kept)
    with torch.inference_mode():
        layer.rotate(x, places)
    (layer.rotate(x.requires_grad_(), places) ** 2).sum().backward()  # angles of inference mode could not be trained by


def angles(places: torch.Tensor) -> torch.Tensor:
    return positions.rotary_angles(places, 4)[..., None, :, :]
