"""Traces are views of the batch's tensors without its padding; what cannot be traced is refused by name."""

from dataclasses import replace

import pytest
import torch

import regard
from regard.capture import build_trace
from regard.capture.build_trace import CapturedPass, pair_of, trace_of
from regard.models.model import Model
from tests.support.attention_outputs import make_model

IDS = [[5, 17, 31, 8, 44, 90, 2], [9, 2, 60]]


@pytest.fixture
def done() -> CapturedPass:
    model = Model(make_model("bert"), None, name="bert")
    return model._session.run(model._reader.read("text", None, IDS)[1], None, [(), ()])


def test_each_text_is_a_view_of_its_rows(done: CapturedPass) -> None:
    (stack,) = done.stacks.values()
    for n, ids in enumerate(IDS):
        trace = trace_of(done, n)
        assert trace.last_hidden_state.shape == (len(ids), 24)
        assert [weights.shape for weights in trace.attention] == [(6, len(ids), len(ids))] * 2
        assert trace.hidden_states[1].data_ptr() == stack.hidden_states[1][n].data_ptr()
        assert torch.equal(trace.values[0], done.calls[0].value[n, :, : len(ids)])


def test_states_that_are_no_numbers_are_refused(done: CapturedPass) -> None:
    (stack,) = done.stacks.values()
    stack.hidden_states[1] = stack.hidden_states[1].clone()
    stack.hidden_states[1][1, 2, 3] = torch.inf
    assert trace_of(done, 0).status.notes == ()
    with pytest.raises(regard.RegardError, match="what leaves layer 0 holds NaN or infinity"):
        trace_of(done, 1)


def test_calls_outside_the_stack_are_left_out_and_noted(done: CapturedPass) -> None:
    done.calls.append(replace(done.calls[0], path="pooler.attention"))
    trace = trace_of(done, 0)
    assert len(trace.attention) == 2
    assert any("'encoder.layer' are left out: 1." in note for note in trace.status.notes)


def test_no_stack_and_one_of_two(done: CapturedPass) -> None:
    done.targets = done.sources
    with pytest.raises(regard.RegardError, match="one of decoder layers, found encoder.layer"):
        pair_of(done, 0)
    done.stacks.clear()
    with pytest.raises(regard.RegardError, match="no stack of layers was found around its attention"):
        trace_of(done, 0)


def test_weights_unlike_the_familys_own_are_noted(done: CapturedPass) -> None:
    done.capture.comparison.add(0.01, 1e-6, 4)
    (note,) = trace_of(done, 0).status.notes
    assert note == build_trace.OTHER_WEIGHTS
    done.capture.comparison.add(0.01, 0.01, 4)
    (note,) = trace_of(done, 0).status.notes
    assert note == build_trace.OTHER_OUTPUTS
