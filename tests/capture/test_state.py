"""The state of a captured pass: each has lists of its own, and what a pass observes comes into it."""

import torch

from regard.capture.options import CaptureOptions
from regard.capture.state import SAME_INPUTS, Capture
from tests.support.generation import IDS, opened


def test_two_passes_share_nothing_that_they_observe() -> None:
    one, other = Capture({}), Capture({})
    one.cross_paths.add("decoder.0")
    one.comparison.add(0.5, 0.0, 3)
    assert other.cross_paths == set()
    assert other.comparison.weights is None
    assert other.comparison.reference == SAME_INPUTS
    assert (other.keep, other.calls, other.contradiction, other.reordered) == (CaptureOptions(), 0, False, False)


def test_what_is_observed_of_a_pass() -> None:
    model = opened("llama")
    session = model._session
    capture = session.new_capture(call_masks=[])
    assert set(capture.module_paths) == {id(module) for module in model.model.modules()}
    with session.capture_attention(capture), torch.no_grad():
        model.model(torch.tensor([IDS]))
    layers = model.model.config.num_hidden_layers
    assert capture.calls == layers
    assert capture.call_masks is not None
    assert len(capture.call_masks) == layers
    assert capture.comparison.weights is not None
    assert capture.comparison.weights < 1e-5
    assert capture.cross_paths == set()
