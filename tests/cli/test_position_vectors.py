"""Vectors of positions: a formula's size, and a model's own table as it stands in the model."""

import pytest
import torch

from regard.cli.position_vectors import learned_positions, position_formula
from regard.errors import RegardError


def test_a_formula_has_the_size_asked_for() -> None:
    assert position_formula("sinusoidal", None, None).shape == (1, 100, 64)
    assert position_formula("rotary", 7, 6).shape == (2, 7, 3)  # cosines and sines of three pairs
    assert position_formula("alibi", 7, None).shape == (8, 7, 7)
    with pytest.raises(RegardError, match="a picture of 1000000000 positions"):
        position_formula("sinusoidal", 10**9, 10**6)


def test_a_models_own_table(minilm, monkeypatch) -> None:
    monkeypatch.setattr("regard.models.load.load", lambda _name: minilm)
    table, name = learned_positions(None, 11, 13)
    assert name == " of all-MiniLM-L6-v2"
    assert torch.equal(table[0], minilm.model.embeddings.position_embeddings.weight[:11, :13])
    assert learned_positions(None, None, None)[0].shape == (1, 100, 384)
    with pytest.raises(RegardError, match="--length: given 513, all-MiniLM-L6-v2 has 512 positions"):
        learned_positions(None, 513, None)
    with pytest.raises(RegardError, match="--width: given 385, all-MiniLM-L6-v2 has 384 components"):
        learned_positions(None, 3, 385)
