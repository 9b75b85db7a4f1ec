"""What an outcome is made of, in models of ours and of others; and what is refused."""

import pytest
import torch

from regard.capture.outcome_path import AttributionTarget, outcome_path
from regard.errors import RegardError
from regard.text.tokens import encoded_ids
from tests.capture.test_score_path import IDS, shaken
from tests.support.own_models import KINDS, TEXTS, opened, pair


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "bert"])
def test_a_logit_of_ours(kind: str) -> None:
    model = opened(kind)
    with torch.no_grad():
        for parameter in model.model.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn_like(parameter)
    trace = model.trace(TEXTS[0])
    source = encoded_ids([token.id for token in trace.tokens])
    parts = outcome_path(model._session, source, None, AttributionTarget(7, 3), [2, 5])
    expected = (trace.logits[:, 7] - trace.logits[:, 3])[[2, 5]].mean()
    assert float(parts.vectors.sum()) == pytest.approx(float(expected), abs=1e-5)
    written = {(each.kind, each.layer) for each in parts.writers}
    assert {("attention", 1), ("feed-forward", 1), ("token", None)} <= written
    biased = KINDS[kind].get("bias", True) and KINDS[kind].get("norm_first", True)
    assert (("final bias", None) in written) == biased  # the last norm's, told apart from those before layer 0


@pytest.mark.parametrize("kind", ["bert", "llama", "albert"])
def test_a_cosine_of_the_last_state(kind: str) -> None:
    model = shaken(kind)
    trace = model.trace(ids=IDS)
    direction = torch.randn(trace.last_hidden_state.shape[1])
    parts = outcome_path(model._session, encoded_ids(IDS), None, AttributionTarget(direction=direction), [1, 4])
    expected = torch.cosine_similarity(trace.last_hidden_state[[1, 4]].mean(0), direction, dim=0)
    assert float(parts.vectors.sum()) == pytest.approx(float(expected), abs=1e-6)
    assert float(parts.whole[0]) == pytest.approx(float(expected), abs=1e-6)


def test_a_decoders_logit_has_parts_across() -> None:
    model = pair()
    trace = model.trace(TEXTS[0], target="Un homme")
    source, target = (encoded_ids([token.id for token in side.tokens]) for side in trace.sides)
    parts = outcome_path(model._session, source, target, AttributionTarget(7), [2])
    assert float(parts.vectors.sum()) == pytest.approx(float(trace.decoder.logits[2, 7]), abs=1e-5)
    assert {each.side for each in parts.writers} == {"decoder"}  # what the encoder wrote comes by attention alone
    assert {each.layer for each in parts.writers if each.cross} == {0, 1}


def test_what_is_refused() -> None:
    model = shaken("bert")
    with pytest.raises(RegardError, match="it has no language head, so no logits: give toward="):
        outcome_path(model._session, encoded_ids(IDS), None, AttributionTarget(7), [2])
    capped = opened("llama")
    head = capped.model.get_output_embeddings()
    assert head is not None
    head.register_forward_hook(lambda module, args, logits: logits.tanh())
    with pytest.raises(
        RegardError, match="the logit is no linear function of the residual stream: 'tanh' stands between"
    ):
        outcome_path(capped._session, encoded_ids([3, 4, 5]), None, AttributionTarget(7), [2])
