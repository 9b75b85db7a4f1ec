"""Each pass of a generation is recorded and added; the model's own forward comes back after."""

from typing import Any

import pytest
import torch

import regard
from regard.generation import step_capture
from regard.generation.step_capture import StepCapture
from regard.models.model import Model
from tests.support.generation import IDS, opened, tiny


def test_embedding_parts_that_are_not_those_of_the_tokens_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = step_capture.StepCapture._add_parts

    def shifted(self: StepCapture, parts: list[Any], first: bool) -> None:
        parts[0].token_embeddings = parts[0].token_embeddings.roll(1, -1)
        right(self, parts, first)

    monkeypatch.setattr(StepCapture, "_add_parts", shifted)
    trace = opened("llama").generate(ids=IDS, max_new_tokens=3).trace
    assert trace.token_embeddings is None
    assert any("embedding table" in note for note in trace.status.notes)


def test_a_model_without_logits_is_refused() -> None:
    model = tiny("llama").model  # without its head
    steps = StepCapture(Model(model, None, name="headless")._session)
    with (
        torch.no_grad(),
        steps.captured(),
        pytest.raises(regard.RegardError, match="headless gives no logits: there is nothing to choose a token from"),
    ):
        steps.model(input_ids=torch.tensor([IDS]))
