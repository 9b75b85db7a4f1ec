"""Positional encodings as matrices, against their formulas."""

import math

import pytest
import torch

import regard
from regard.explain.vectors.positions import HEADS, encoding, matrix_names, title


def test_sinusoidal_is_the_formula() -> None:
    (matrix,) = encoding("sinusoidal", 7, 10)
    assert matrix.shape == (7, 10)
    for position in range(7):
        for pair in range(5):
            angle = position / 10000 ** (2 * pair / 10)
            expected = matrix.new_tensor([math.sin(angle), math.cos(angle)])
            torch.testing.assert_close(matrix[position, 2 * pair : 2 * pair + 2], expected, atol=1e-6, rtol=0)


def test_rotary_is_the_cosine_and_sine_of_one_angle() -> None:
    cosine, sine = encoding("rotary", 11, 6)
    assert cosine.shape == sine.shape == (11, 3)
    torch.testing.assert_close(cosine**2 + sine**2, torch.ones_like(cosine))
    assert cosine[0].tolist() == [1, 1, 1]


def test_alibi_falls_with_the_distance_head_by_head() -> None:
    bias = encoding("alibi", 5, 0)
    assert bias.shape == (HEADS, 5, 5)
    assert bias[0, 4].tolist() == [-2.0, -1.5, -1.0, -0.5, 0.0]  # of 8 heads the first: 1/2
    torch.testing.assert_close(bias[7, 4, 0] * 128, bias[0, 4, 0])  # the last: 1/256


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(regard.RegardError, match="'spiral': needs sinusoidal, learned, rotary or alibi"):
        encoding("spiral", 3, 4)
    with pytest.raises(regard.RegardError, match="positions: "):
        encoding("rotary", 3, 5)


def test_names() -> None:
    assert matrix_names("rotary", 2) == ["cosine", "sine"]
    assert matrix_names("alibi", 3) == ["head 0", "head 1", "head 2"]
    assert title("learned", torch.zeros(1, 7, 5), " of M") == "learned positions of M, 7 × 5"
