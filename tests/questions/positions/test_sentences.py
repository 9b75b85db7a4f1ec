"""Sentences about positional encodings are computed from their numbers, and say nothing of one position alone."""

import math

import pytest
import torch

from regard.questions.positions.answer import Positions
from regard.questions.positions.encodings import encoding, positions_per_rotary_turn


def test_sinusoidal() -> None:
    said = Positions("sinusoidal", encoding("sinusoidal", 100, 400)).findings()
    assert said[1].startswith("The first pair repeats every 6.3 positions (2π), the last every ")
    assert said[2] == "278 of 400 columns do not repeat within these 100 positions."
    table = encoding("sinusoidal", 100, 400)[0]
    near = torch.nn.functional.cosine_similarity(table[1:], table[:-1]).mean()
    assert said[3].startswith(
        f"Neighbouring positions have vectors of cosine {float(near):.2f} on average, those 64 apart"
    )


def test_alike_by_distance() -> None:
    said = Positions("learned", torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])).findings()
    assert said[1].endswith("those 2 apart 1.00: no steady fall with distance.")
    falling = Positions("sinusoidal", encoding("sinusoidal", 3, 8)).findings()
    assert falling[-1].endswith(": ever less alike at distances 1, 2.")


def test_a_learned_table(minilm) -> None:
    table = minilm.trace("a man on a river bank").positional[None]
    said = Positions("learned", table).findings()
    lengths = table[0].norm(dim=1)
    assert f"of median length {float(lengths.median()):.2f}" in said[0]
    assert f"position {int(lengths.argmax())} ({float(lengths.max()):.2f})" in said[0]
    assert said[2].startswith("Least like the others is position ")


def test_rotary_turns() -> None:
    pictures = encoding("rotary", 100, 64)
    every = positions_per_rotary_turn(pictures)
    assert Positions("rotary", pictures).findings()[-1] == (
        f"{sum(turn > 100 for turn in every)} of 32 pairs do not turn once within these 100 positions."
    )


def test_alibi_slopes() -> None:
    pictures = encoding("alibi", 11, 1)
    said = Positions("alibi", pictures).findings()
    assert said[1] == "Head 0 takes off most, 0.5 a position; head 7 least, 0.003906."
    assert f"by {math.exp(-5):.1e} in head 0" in said[2]


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary", "alibi", "learned"])
def test_one_position_alone(kind: str) -> None:
    pictures = torch.ones(1, 1, 4) if kind == "learned" else encoding(kind, 1, 4)
    said = Positions(kind, pictures).findings()
    assert said
    assert not any("nan" in sentence or "of cosine" in sentence for sentence in said)
