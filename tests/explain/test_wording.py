"""Which tokens are meant; of an encoder-decoder the side has to be said, wherever one text is needed."""

from typing import Any

import pytest
import torch

import regard
from regard.explain.causes.ablation_effect import effect
from regard.explain.causes.contributions import contributions, rollout
from regard.explain.vectors.similarity import across_texts, states_of
from regard.explain.wording import place_in
from regard.models.model import Model
from tests.support.attention_outputs import make_model

IDS = torch.randint(1, 101, (1, 9), generator=torch.Generator().manual_seed(8))


@pytest.fixture(scope="module")
def pair():
    return Model(make_model("marian"), None, name="marian").trace(ids=IDS[0], target_ids=IDS[0, :5])


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_the_whole_trace_is_refused(pair) -> None:
    for look in (
        lambda: contributions(pair, 2, 0),
        lambda: rollout(pair),
        lambda: states_of(pair, 2),
        lambda: effect(pair, pair, 2),
    ):
        with pytest.raises(
            regard.RegardError, match=r"marian is an encoder-decoder: pass its trace's .encoder or .dec"
        ):
            look()


def test_each_side_has_its_own(pair) -> None:
    for side, length in ((pair.encoder, 9), (pair.decoder, 5)):
        torch.testing.assert_close(rollout(side).sum(1), torch.ones(length, dtype=torch.float64))
        assert states_of(side, 2).shape == (3, 24)
        assert contributions(side, 2, 1).error <= 1e-5
        assert effect(side, side, 2).moved == pytest.approx(0, abs=1e-9)
    assert bool((rollout(pair.decoder).triu(1) == 0).all())
    assert contributions(pair.decoder, 2, 1, part="cross").norms.shape == (3, 9)
    with pytest.raises(regard.RegardError, match="has no cross-attention"):
        contributions(pair.encoder, 2, 1, part="cross")
    assert across_texts([(pair.encoder, 2), (pair.decoder, 2)]).shape == (3, 2, 2)


def test_a_word_or_a_tokens_number(minilm: Any) -> None:
    trace = minilm.trace("A bank, 7 banks.")
    assert place_in(trace, "bank") == trace.word("bank")[0]
    assert place_in(trace, "7") == trace.word("7")[0]
    assert place_in(trace, "2") == 2
    with pytest.raises(regard.RegardError, match="'river' is not in the text"):
        place_in(trace, "river")
