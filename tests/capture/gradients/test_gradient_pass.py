"""A pass with gradients, against the numbers of the plain pass and against autograd by hand."""

from typing import Any

import pytest
import torch

from regard.errors import RegardError
from regard.models.readout import gradient_run

TEXT = "A man on a river bank."


def test_states_are_the_traces(minilm: Any) -> None:
    trace = minilm.trace(TEXT)
    done, shown = gradient_run(minilm, trace)
    assert len(done.states) == 1
    for mine, theirs in zip(done.states[0], trace.hidden_states, strict=True):
        torch.testing.assert_close(mine[0].detach(), theirs, atol=2e-5, rtol=0)
    torch.testing.assert_close(shown.last_hidden_state.detach(), trace.last_hidden_state, atol=2e-5, rtol=0)
    assert done.logits is None
    torch.testing.assert_close(done.embeddings[0].detach(), trace.token_embeddings, atol=1e-6, rtol=0)


def test_gradients_are_those_of_the_model(minilm: Any) -> None:
    """By hand, with the embeddings given to the model instead of exchanged inside it."""
    trace = minilm.trace(TEXT)
    done, _ = gradient_run(minilm, trace)
    assert done.last_hidden_state is not None
    outcome = done.last_hidden_state[5].sin().sum()
    (found,) = done.gradients(outcome, done.embeddings)
    given = trace.token_embeddings.clone().requires_grad_()
    with torch.enable_grad():
        states = minilm.model(inputs_embeds=given[None]).last_hidden_state
        (expected,) = torch.autograd.grad(states[0, 5].sin().sum(), [given])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    assert all(parameter.grad is None for parameter in minilm.model.parameters())


def test_what_the_outcome_does_not_depend_on_has_no_slope(minilm: Any) -> None:
    done, _ = gradient_run(minilm, minilm.trace(TEXT))
    assert done.last_hidden_state is not None
    other = torch.zeros(3, requires_grad=True)
    (slope,) = done.gradients(done.last_hidden_state.sum(), [other])
    assert not bool(slope.any())
    with pytest.raises(RegardError, match="the outcome is a plain number"):
        done.gradients(torch.tensor(1.0), [other])
