"""A painter: patches there and back, words by key and by value, and by its formula where there is but one word."""

import math

import pytest
import torch

import regard
from regard.nn.painter import Painter, joined, patches
from regard.nn.painter_config import PainterConfig

SIZES = {"vocabulary": 13, "length": 7, "side": 15, "patch": 5, "layers": 2, "d_model": 22, "heads": 2}


def made(**changes: object) -> Painter:
    torch.manual_seed(0)
    return Painter(PainterConfig(**(SIZES | changes))).eval()


def inputs(count: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(1)
    words = torch.stack([torch.randperm(13, generator=drawn)[:7] for _ in range(count)])
    return torch.randn(count, 15, 15, generator=drawn), torch.rand(count, generator=drawn), words


def test_patches_are_tiles_row_by_row() -> None:
    picture = torch.arange(36.0).view(1, 6, 6)
    cut = patches(picture, 3)
    assert cut.shape == (1, 9, 4)
    assert cut[0, 0].tolist() == [0, 1, 6, 7]
    assert cut[0, 1].tolist() == [2, 3, 8, 9]
    assert cut[0, 5].tolist() == [16, 17, 22, 23]
    assert torch.equal(joined(cut), picture)


def test_the_published_size() -> None:
    painter = Painter(PainterConfig(vocabulary=17, length=10))
    assert sum(each.numel() for each in painter.parameters()) == 313_168


def test_places_begin_as_large_as_what_they_are_added_to() -> None:
    painter = made(d_model=400)
    words, places = painter.embedding.weight.std(), painter.place.std()
    spots = (painter.row[:, None] + painter.column).std()
    assert [each.item() for each in (words, places, spots)] == pytest.approx([1, 1, 1], abs=0.1)


@pytest.mark.parametrize("values", ["plain", "contextual"])
def test_keys_and_values_go_their_own_ways(values: str) -> None:
    """Words with keys in another order are the words in that order, where values go along; here values stay."""
    painter, (noisy, time, words) = made(values=values), inputs()
    order = torch.tensor([0, 5, 2, 3, 4, 1, 6])
    with torch.no_grad(), regard.record() as plain:
        as_it_is = painter(noisy, time, words)
        assert torch.equal(painter(noisy, time, words, keys=torch.arange(7)), as_it_is)
    with torch.no_grad(), regard.record() as swapped:
        other = painter(noisy, time, words, keys=order)
    assert not torch.allclose(other, as_it_is, atol=1e-3)
    first = ("painter.0.cross", 0)
    weights = plain[first].weights.dense()
    torch.testing.assert_close(swapped[first].weights.dense(), weights[..., order])
    assert torch.equal(swapped[first].value, plain[first].value)
    layer = painter.painter[0].cross
    plain_values = layer.value(painter.embedding(words)).unflatten(-1, (2, 11)).transpose(1, 2)
    assert torch.allclose(plain[first].value, plain_values, atol=1e-5) == (values == "plain")


def test_an_edge_that_is_cut_has_no_weight() -> None:
    painter, (noisy, time, words) = made(), inputs()
    may = torch.ones(7, dtype=torch.bool)
    may[2] = False
    with torch.no_grad(), regard.record() as calls:
        painter(noisy, time, words, may=may)
    for (path, _), call in calls.items():
        if path.endswith(".cross"):
            weights = call.weights.dense()
            assert weights[..., 2].abs().max() == 0
            torch.testing.assert_close(weights.sum(-1), torch.ones(3, 2, 9))


def test_time_enters_as_waves() -> None:
    painter, (noisy, _, words) = made(), inputs()
    seen = []
    painter.time.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    painter(noisy, torch.tensor([0.0, 0.25, 1.0]), words)
    slow = 1000 / 10000 ** (31 / 32)
    assert seen[0].shape == (3, 64)
    assert seen[0][0].tolist() == [0.0] * 32 + [1.0] * 32
    assert float(seen[0][2, 0]) == pytest.approx(math.sin(1000), abs=1e-4)
    assert float(seen[0][1, 31]) == pytest.approx(math.sin(0.25 * slow), abs=1e-5)
    assert float(seen[0][1, 63]) == pytest.approx(math.cos(0.25 * slow), abs=1e-5)
