"""Heads asked about over texts, in tests, and of an encoder-decoder."""

from typing import Any

import numpy as np
import pytest

from regard.errors import RegardError
from regard.explain.weights.head_means import mean_scores
from regard.explain.weights.head_scores import head_scores
from regard.questions.heads.query import HeadsQuery
from tests.support.own_models import pair

TEXTS = ["The old man walked slowly along the river bank.", "The cat saw the cat and the dog saw the dog."]


def test_texts_are_averaged_and_tests_stand_beside(minilm: Any) -> None:
    traces = minilm.trace(TEXTS)
    found = HeadsQuery(tests=True, seed=3).answer(minilm, traces)
    assert list(found.tables) == ["texts", "random tokens, repeated", "tokens exchanged"]
    expected = mean_scores([head_scores(trace) for trace in traces])
    for name, table in expected.scores.items():
        np.testing.assert_array_equal(found.tables["texts"].scores[name], table)
    assert [text for text, _ in found.about.texts] == TEXTS


def test_of_an_encoder_decoder_there_are_three_tables_and_no_tests() -> None:
    model = pair()
    trace = model.trace("the man on the river bank", target="sur la rive")
    assert list(HeadsQuery().answer(model, [trace]).tables) == ["encoder", "decoder", "cross-attention"]
    with pytest.raises(RegardError, match="--tests: .* is an encoder-decoder"):
        HeadsQuery(tests=True).answer(model, [trace])


def test_a_seed_out_of_range(minilm: Any, bank: Any) -> None:
    with pytest.raises(RegardError, match="seed: given -1, needs a whole number"):
        HeadsQuery(tests=True, seed=-1).answer(minilm, bank)
