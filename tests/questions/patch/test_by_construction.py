"""Which patches give the other text's outcome whatever the model does, and which only seem so."""

from typing import Any

import pytest
import torch

from regard.explain.causes.outcomes import Outcome, cosine, logit_difference
from regard.questions.patch.by_construction import by_construction
from tests.support import own_models

RIVER, MONEY = "We sat on the quiet river bank.", "We sat on the quiet money bank."


def test_where_texts_differ_and_where_the_outcome_is_read(minilm: Any) -> None:
    outcome = cosine("bank", minilm.trace(RIVER)["bank"])
    given = ((0, 0, "elsewhere"), (2, 1, "read"))
    found = minilm.patch_sweep(RIVER, MONEY, outcome, layers=["input", 0, 5], at=[6, 7], direction="noising")
    assert found.given == given
    assert [found.shares[row][column] for row, column, _ in given] == pytest.approx([1.0, 1.0], abs=1e-3)
    assert minilm.patch_sweep(RIVER, MONEY, outcome, what="feed_forward", layers=[5], at=[7]).given == ()


def test_texts_that_differ_twice_and_an_outcome_of_all_tokens(minilm: Any) -> None:
    everywhere = Outcome("mean", lambda trace: trace.last_hidden_state.mean(0).norm(), logits=False)
    twice = RIVER.replace("river", "money").replace("quiet", "noisy")
    assert minilm.patch_sweep(RIVER, twice, everywhere, layers=["input", 5], at=[5, 6, 7]).given == ()


def test_before_the_last_word_of_a_decoder_all_is_the_same() -> None:
    model = own_models.opened("llama")
    outcome = logit_difference(model, "bank", "man")
    found = model.patch_sweep("A man is on a river", "A man is on a bank", outcome)
    depth, last = len(found.layers), len(found.columns) - 1
    assert found.given == tuple((row, last, "elsewhere") for row in range(depth))
    assert [row[last] for row in found.shares] == pytest.approx([1.0] * depth, abs=1e-3)


def test_of_an_encoder_decoder_what_is_read_across_counts() -> None:
    pair = own_models.pair()
    norm = Outcome("norm", lambda trace: float(trace.sides[-1].last_hidden_state[-1].norm()))
    targets = ("Une rive", "Une rive")
    encoder, decoder = (
        pair.patch_sweep("A bank", "She bank", norm, part=part, targets=targets) for part in ("encoder", "decoder")
    )
    assert encoder.given == ((0, 0, "elsewhere"),)
    assert decoder.given == ((len(decoder.layers) - 1, len(decoder.columns) - 1, "read"),)


def test_a_patch_that_does_not_reach_the_outcome_is_not_listed(minilm: Any) -> None:
    """Some families carry more from layer to layer than hidden states: their patches need not be all of it."""
    run, source = minilm.trace(MONEY), minilm.trace(RIVER)
    places = [((6,), (6,))]
    assert by_construction(run, source, None, ["input"], places, [[0.9]], (0.0, 1.0)) == ()
    assert by_construction(run, source, None, ["input"], places, [[1.0]], (0.0, 1.0)) == ((0, 0, "elsewhere"),)
    assert by_construction(run, source, None, ["input"], places, [[1.0]], (1.0, 1.0)) == ()
    assert torch.equal(run.hidden_states[0][5], source.hidden_states[0][5])
