"""Positional encodings as matrices, against their formulas."""

import math

import pytest
import torch

import regard
from regard.cli.asking import command_option_name
from regard.questions.positions.encodings import (
    HEADS,
    alike,
    encoding,
    learned_position_table,
    positions_per_rotary_turn,
    slopes,
)


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
    with pytest.raises(regard.RegardError, match="'spiral', needs sinusoidal, learned, rotary or alibi"):
        encoding("spiral", 3, 4)
    with pytest.raises(regard.RegardError, match="positions: "):
        encoding("rotary", 3, 5)


def test_a_formula_has_the_size_asked_for() -> None:
    assert encoding("sinusoidal").shape == (1, 100, 64)
    assert encoding("rotary", 7, 6).shape == (2, 7, 3)  # cosines and sines of three pairs
    assert encoding("alibi", 7).shape == (8, 7, 7)
    with pytest.raises(regard.RegardError, match="a picture of 1000000000 positions"):
        encoding("sinusoidal", 10**9, 10**6)


def test_a_models_own_table(minilm) -> None:
    table = learned_position_table(minilm, 11, 13)
    assert torch.equal(table[0], minilm.model.embeddings.position_embeddings.weight[:11, :13])
    assert learned_position_table(minilm).shape == (1, 100, 384)
    with pytest.raises(regard.RegardError, match="^length: given 513, all-MiniLM-L6-v2 has 512 positions"):
        learned_position_table(minilm, 513)
    with pytest.raises(regard.RegardError, match="^--width: given 385, all-MiniLM-L6-v2 has 384 components"):
        learned_position_table(minilm, 3, 385, called=command_option_name)


def test_alike_by_distance() -> None:
    found = alike(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    assert found == [(1, 0.0), (2, 1.0)]


def test_turns_and_slopes() -> None:
    every = positions_per_rotary_turn(encoding("rotary", 100, 64))
    assert every[0] == pytest.approx(2 * math.pi, rel=1e-4)
    assert every[-1] == pytest.approx(2 * math.pi * 10000 ** (62 / 64), rel=1e-3)
    assert slopes(encoding("alibi", 11))[:2] == [0.5, 0.25]
