"""Running a trace again with gradients."""

from typing import Any

import pytest

from regard.errors import RegardError
from regard.models.gradient_runs import gradient_run
from tests.support import generation


def test_the_trace_is_left_as_it_was(minilm: Any) -> None:
    trace = minilm.trace("A text.")
    before = trace.last_hidden_state.clone()
    _, shown = gradient_run(minilm, trace, lambda _, rows: rows * 0.5)
    assert not shown.last_hidden_state.allclose(before, atol=1e-2)
    assert trace.last_hidden_state.equal(before)
    assert not trace.last_hidden_state.requires_grad
    assert shown.tokens is trace.tokens


def test_what_is_not_a_trace_of_the_model_is_refused(minilm: Any) -> None:
    with pytest.raises(RegardError, match="the trace has to be of all-MiniLM-L6-v2"):
        gradient_run(minilm, generation.opened("llama").trace(ids=generation.IDS))
