"""Schematic figures of attention: they hold the numbers and sizes that they were given, inside the sheet."""

import pytest
import torch
from matplotlib.figure import Figure

from drawings.attention import cross_attention, multi_head, projections, single_head, without_projections
from regard.attention.attend import attend
from regard.nn.single_head import SelfAttention
from regard.textbook import steps

NAMES = ["one", "two", "three"]


def told(figure: Figure) -> str:
    """Every text of a figure, which must lie in it."""
    figure.canvas.draw()
    whole = figure.bbox
    for text in figure.axes[0].texts:
        extent = text.get_window_extent()
        inside = whole.x0 - 1 <= extent.x0 and extent.x1 <= whole.x1 + 1
        assert inside, text.get_text()
        assert whole.y0 - 1 <= extent.y0 <= extent.y1 <= whole.y1 + 1, text.get_text()
    return "\n".join(text.get_text() for text in figure.axes[0].texts)


@pytest.fixture
def head() -> tuple[torch.Tensor, SelfAttention]:
    torch.manual_seed(0)
    return torch.randn(3, 5), SelfAttention.from_weights(
        torch.randn(7, 5), torch.randn(7, 5), torch.randn(11, 5), convention="W @ x"
    )


def test_projections_are_products(head) -> None:
    x, layer = head
    figure = projections(x, layer.query.weight, layer.key.weight, layer.value.weight, NAMES)
    text = told(figure)
    for size in ("3 × 5", "5 × 7", "3 × 7", "5 × 11", "3 × 11"):
        assert size in text
    drawn = [torch.tensor(image.get_array()).float() for image in figure.axes[0].images]
    torch.testing.assert_close(drawn[0], x)
    torch.testing.assert_close(drawn[2], layer.query(x).detach())
    torch.testing.assert_close(drawn[6], layer.value(x).detach())


def test_a_single_heads_numbers(head) -> None:
    x, layer = head
    _, weights = layer(x, return_attention=True)
    way = steps(weights, layer.value(x), query=1)
    figure = single_head(way, "two", NAMES)
    text = told(figure)
    for number in way.weights.tolist():
        assert f"{number:.4f}" in text
    for number in way.products.tolist():
        assert f"{number:.2f}" in text
    assert "query of “two”" in text
    assert f"× {7**-0.5:.3f}" in text
    assert "1 × 11" in text
    context = torch.tensor(figure.axes[0].images[-1].get_array())
    torch.testing.assert_close(context[0], way.context)


@pytest.mark.parametrize(("heads", "more"), [(8, "… 4 more"), (4, None), (2, None)])
def test_many_heads_have_their_sizes(heads: int, more: str | None) -> None:
    text = told(multi_head(7, 40, heads, 5, 3))
    assert (more in text) if more else ("more" not in text)
    assert f"head {heads - 1}" in text
    assert f"joined\n7 × {3 * heads}" in text
    assert f"W_O\n{3 * heads} × 40" in text
    assert "√5" in text
    assert f"weights in all: {heads * 40 * 13 + 3 * heads * 40:,}" in text


def test_two_lengths() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(6, 7), torch.randn(8, 7), torch.randn(8, 11)
    result = attend(q, k, v)
    weights = result.weights.dense()
    figure = cross_attention(torch.randn(6, 16), torch.randn(8, 20), weights, result.output, widths=(7, 11))
    text = told(figure)
    for size in ("6 × 16", "8 × 20", "queries 6 × 7", "keys 8 × 7", "values 8 × 11", "6 × 8", "6 × 11"):
        assert size in text
    torch.testing.assert_close(torch.tensor(figure.axes[0].images[2].get_array()).float(), weights)


def test_the_box_without_parameters() -> None:
    x = torch.randn(3, 20)
    scores = x @ x.T
    figure = without_projections(x, scores, scores.softmax(-1), scores.softmax(-1) @ x, NAMES, at=1)
    text = told(figure)
    assert "framed: “two”" in text
    assert text.count("3 × 20") == text.count("3 × 3") == 2
    drawn = [torch.tensor(image.get_array()).float() for image in figure.axes[0].images]
    torch.testing.assert_close(drawn[2], scores.softmax(-1))
    torch.testing.assert_close(drawn[3], (drawn[2] @ x)[:, :16])
