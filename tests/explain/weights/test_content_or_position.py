"""Whether heads follow places or tokens, on weights whose answer is known and on a real model."""

from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.errors import RegardError
from regard.explain.weights.content_or_position import _alike, _cycle_of_exchanged_tokens, content_or_position
from regard.explain.weights.repeated_tokens import random_ids

TEXT = "The old man walked slowly along the river bank while the children played near the water."


def test_alike() -> None:
    one = torch.tensor([[[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]], [[0.2, 0.2, 0.2]], [[0.0, 0.0, 0.0]]]).double()
    other = torch.tensor([[[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]], [[0.2, 0.0, 0.0]], [[0.0, 0.0, 0.0]]]).double()
    found = _alike(one, other)
    torch.testing.assert_close(found[:3], torch.tensor([1.0, 0.0, 0.5]).double())
    assert bool(found[3].isnan())


def test_nothing_stays_where_it_was() -> None:
    for count in (2, 3, 17):
        moved = _cycle_of_exchanged_tokens(count, torch.Generator().manual_seed(count))
        assert sorted(moved.tolist()) == list(range(count))
        assert not bool((moved == torch.arange(count)).any())


def test_a_model_that_knows_no_places_follows_content_alone() -> None:
    """Without positions a key's score is the same wherever it stands: of one layer, content is 1 exactly."""
    torch.manual_seed(3)
    own = regard.Transformer(
        regard.TransformerConfig(vocabulary=31, kind="encoder", layers=1, heads=2, d_model=8, positions="none")
    )
    with torch.no_grad():
        for parameter in own.parameters():
            parameter.mul_(4)  # weights that are far from even
    model = regard.load(own)
    found = content_or_position(model, [random_ids(model, 23)], exchanges=3)
    np.testing.assert_allclose(found.scores["content"], 1, atol=1e-5)
    assert float(found.scores["position"].max()) < 0.95
    assert found.counts == {"queries": 5}


def test_a_head_of_the_default_model_that_looks_at_the_token_before(minilm: Any) -> None:
    found = content_or_position(minilm, [TEXT])
    assert found.best("position", 1, by=found.scores["position"] - found.scores["content"])[0][:2] == (0, 2)
    for scores in found.scores.values():
        assert float(np.nanmin(scores)) >= 0
        assert float(np.nanmax(scores)) <= 1 + 1e-6


def test_what_cannot_be_compared_is_refused(minilm: Any) -> None:
    with pytest.raises(RegardError, match="a text has 3 tokens, needs 8 or more"):
        content_or_position(minilm, ["The river bank"])
    with pytest.raises(RegardError, match="given 0 texts, 4 exchanges, needs 1 or more"):
        content_or_position(minilm, [])
