"""Painting: steps by their formula, and weights that are every step's, layer's and head's."""

import pytest
import torch

from regard.nn.painter import Painter
from regard.nn.painter_config import PainterConfig
from regard.nn.painting import paint


class Knows(Painter):
    """Expects the same pictures, whatever it sees; keeps the times that it was asked at."""

    def __init__(self, pictures: torch.Tensor) -> None:
        super().__init__(PainterConfig(vocabulary=5, length=3, layers=1, d_model=6, heads=2))
        self.pictures, self.times = pictures, []

    def forward(self, noisy: torch.Tensor, time: torch.Tensor, words: torch.Tensor, **options: object) -> torch.Tensor:
        self.times.append(float(time[0]))
        super().forward(noisy, time, words)
        return self.pictures


def test_who_expects_one_picture_paints_it_along_a_straight_line() -> None:
    pictures, noise = torch.randn(2, 2, 16, 16).unbind()
    knows = Knows(pictures)
    painted = paint(knows, torch.zeros(2, 3, dtype=torch.long), noise, steps=5)
    assert knows.times == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    torch.testing.assert_close(painted.pictures, pictures)
    assert painted.expected.shape == (5, 2, 16, 16)


def test_weights_are_kept_of_every_step_layer_and_head() -> None:
    torch.manual_seed(0)
    painter = Painter(PainterConfig(vocabulary=11, length=7, layers=3, d_model=10, heads=5)).train()
    words, noise = torch.randint(11, (2, 7)), torch.randn(2, 16, 16)
    painted = paint(painter, words, noise, steps=4)
    assert painted.weights.shape == (4, 3, 2, 5, 16, 7)
    torch.testing.assert_close(painted.weights.sum(-1), torch.ones(4, 3, 2, 5, 16))
    torch.testing.assert_close(painted.heat.sum(-1), torch.ones(2, 16))
    assert painter.training
    may = torch.tensor([True] * 6 + [False])
    assert paint(painter, words, noise, steps=2, may=may).heat[..., 6].max() == 0
    again = paint(painter, words, noise, steps=4, keys=torch.arange(7))
    assert torch.equal(again.pictures, painted.pictures)
    one = paint(painter, words[:1], noise[:1], steps=4)
    torch.testing.assert_close(one.pictures, painted.pictures[:1], atol=1e-4, rtol=1e-4)
