"""Each pass of a generation is recorded and added; the model's own forward comes back after."""

from typing import Any

import pytest
import torch

import regard
from regard.generation import step_capture
from regard.generation.step_capture import StepCapture
from regard.models.model import Model
from tests.support.generation import IDS, opened, tiny


def test_rows_of_every_pass_are_added_and_forward_comes_back() -> None:
    model = opened("llama")
    steps, own = StepCapture(model._session), model._session.model
    with torch.no_grad(), steps.captured():
        assert "forward" in own.__dict__
        cache = own(input_ids=torch.tensor([IDS])).past_key_values
        assert (steps.length, len(steps._calls)) == (7, 2)
        steps.last = True
        own(input_ids=torch.tensor([[3]]), past_key_values=cache)
    assert steps.length == 8
    assert "forward" not in own.__dict__
    encoded = model._reader.read("text", None, [[*IDS, 3]])[1][0]
    joined = steps.joined(encoded, None)
    assert [call.weights.shape for call in joined.calls] == [(1, 6, 8, 8)] * 2
    assert joined.capture.comparison.rows > 0
    assert joined.capture.call_masks is None
    expected = model.trace(ids=[*IDS, 3])
    torch.testing.assert_close(joined.logits[0], expected.logits, atol=1e-5, rtol=0)


def test_some_steps_are_compared_ever_rarer() -> None:
    steps = StepCapture(opened("llama")._session)
    sampled = []
    for steps._passes in range(20):
        sampled += [steps._passes] if steps._sampled else []
    assert sampled == [0, 1, 2, 4, 8, 16]
    steps.last = True
    assert steps._sampled


def test_embedding_parts_that_are_not_those_of_the_tokens_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = step_capture.StepCapture._add_parts

    def shifted(self: StepCapture, parts: list[Any], first: bool) -> None:
        parts[0].learned = parts[0].learned.roll(1, -1)
        right(self, parts, first)

    monkeypatch.setattr(StepCapture, "_add_parts", shifted)
    trace = opened("llama").generate(ids=IDS, new_tokens=3).trace
    assert trace.learned is None
    assert any("the learned ones are not those of the tokens" in note for note in trace.status.notes)


def test_a_model_without_logits_is_refused() -> None:
    model = tiny("llama").model  # without its head
    steps = StepCapture(Model(model, None, name="headless")._session)
    with (
        torch.no_grad(),
        steps.captured(),
        pytest.raises(regard.RegardError, match="headless gives no logits: there is nothing to choose a token from"),
    ):
        steps.model(input_ids=torch.tensor([IDS]))
