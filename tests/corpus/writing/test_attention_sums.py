"""Sums over heads and tokens, against the trace's own maps and head scores."""

import numpy as np
import pytest
import torch

import regard
from regard.corpus.writing.attention_sums import SUMS, largest_weights_to_store, sum_layer
from regard.explain.weights.head_scores import head_scores
from regard.models.model import Model
from regard.models.states import Window, read_states
from tests.support import RIVER

REPEATED = "The cat saw the cat and the dog saw the dog, and the cat ran."


@pytest.mark.parametrize("text", [RIVER, REPEATED])
def test_agrees_with_the_trace(minilm: Model, text: str) -> None:
    trace = minilm.trace(text)
    ids = np.array([[token.id for token in trace.tokens]])
    special = np.array([[token.special for token in trace.tokens]])
    counted = ~special & (np.arange(ids.shape[1]) > 0)
    scores = head_scores(trace)
    (batch,) = read_states(minilm, [Window(ids[0].tolist())], [5], attention=True)
    torch.testing.assert_close(batch.states[0, 0], trace.last_hidden_state)
    for layer, (weights, whole) in enumerate(zip(trace.attention, batch.maps, strict=True)):
        found = sum_layer(whole, ids, special, counted, mean=True)
        for name in ("entropy", "received", "distance"):
            expected = getattr(weights, name)().mean(0).numpy()
            np.testing.assert_allclose(getattr(found, name)[0], expected, rtol=2e-5, atol=2e-6)
        expected = weights.dense()[:, :, torch.tensor(special[0])].sum(-1).mean(0).numpy()
        np.testing.assert_allclose(found.special[0], expected, rtol=2e-5)
        sums = dict(zip(SUMS, found.heads.T, strict=True))
        assert [sums[name][0] for name in ("queries", "duplicates", "inductions")] == [
            scores.queries,
            scores.duplicates,
            scores.inductions,
        ]
        for name in ("previous", "next", "same", "special", "first", "duplicate", "induction"):
            over = {"next": "nexts", "duplicate": "duplicates", "induction": "inductions"}.get(name, "queries")
            with np.errstate(invalid="ignore"):
                mean = sums[name] / sums[over]
            np.testing.assert_allclose(mean, getattr(scores, name)[layer].numpy(), rtol=1e-5, atol=1e-7)


def test_largest_takes_the_smaller_key_of_two_alike() -> None:
    keys, weights = largest_weights_to_store(np.array([[0.2, 0.3, 0.3, 0.2], [0.0, 0.0, 1.0, 0.0]]), 3)
    assert keys.tolist() == [[1, 2, 0], [2, 0, 1]]
    assert weights.tolist() == [[0.3, 0.3, 0.2], [1.0, 0.0, 0.0]]
    assert largest_weights_to_store(np.array([[0.4, 0.6]]), 3)[0].tolist() == [[1, 0, -1]]


def test_sums_of_a_uniform_head_and_its_sink() -> None:
    query = torch.zeros(1, 1, 3, 5)
    weights = regard.attend(query, query, query, sinks=torch.zeros(1)).weights  # three keys and a sink, each a quarter
    ids, none = np.array([[7, 8, 7]]), np.zeros((1, 3), bool)
    found = sum_layer(weights, ids, none, np.array([[False, True, True]]), mean=True)
    sums = dict(zip(SUMS, found.heads[0].tolist(), strict=True))
    assert found.entropy[0] == pytest.approx(np.log(4), rel=1e-6)
    assert found.distance[0] == pytest.approx([1, 2 / 3, 1])  # as if the weights on keys summed to 1
    assert found.received[0] == pytest.approx(0.75)
    assert found.special[0] == pytest.approx(0)
    assert sums == pytest.approx(
        {
            "queries": 2,
            "entropy": 2 * np.log(4),
            "distance": 5 / 3,
            "previous": 0.5,
            "next": 0.25,
            "nexts": 1,
            "same": 0.5,
            "special": 0,
            "first": 0.5,
            "duplicate": 0.25,
            "duplicates": 1,
            "induction": 0.25,
            "inductions": 1,
        },
        rel=1e-6,
    )


def test_large_scores_and_a_query_that_may_look_at_nothing() -> None:
    draws = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, 3, 7, 5, generator=draws) * scale for scale in (9.0, 9.0, 1.0))
    mask = torch.rand(2, 1, 7, 7, generator=draws) > 0.3
    mask[1, 0, 4] = False
    weights = regard.attend(query, key, value, mask=mask, offset=0).weights
    exact = weights.scores[...].double().softmax(-1).nan_to_num(0.0)
    found = sum_layer(weights, np.zeros((2, 7), int), np.zeros((2, 7), bool), np.ones((2, 7), bool), mean=True)
    np.testing.assert_allclose(found.mean, exact.mean(1).numpy(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.received, exact.sum(2).mean(1).numpy(), rtol=1e-6)
    entropy = torch.special.entr(exact).sum(-1).mean(1).numpy()
    np.testing.assert_allclose(found.entropy, entropy, rtol=1e-5, atol=1e-7)
    assert found.entropy[1, 4] == found.distance[1, 4] == found.special[1, 4] == 0
