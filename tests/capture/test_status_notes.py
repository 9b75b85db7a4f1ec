"""Notes say what was left out and what a reader has to know, each where it holds."""

import torch

from regard.attention.recording import Call
from regard.capture import status_notes
from regard.capture.eager_attention import KERNEL, NOTE, ROUNDED, map_of_reported_weights
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.capture.state import Capture


def call(path: str, keys: int = 7, kernel: str = "k") -> Call:
    return Call(path, 0, kernel, map_of_reported_weights(torch.full((1, 3, 7, keys), 1 / keys), True), None, None, None)


def test_of_options() -> None:
    assert status_notes.notes_on_capture_options(CaptureOptions(), 5, True) == ()
    (kept,) = status_notes.notes_on_capture_options(CaptureOptions(frozenset([4, 1])), 5, True)
    assert kept == "kept of its 5 layers: 1, 4"
    none, logits, outputs = status_notes.notes_on_capture_options(CaptureOptions(NO_LAYERS, False, False), 5, True)
    assert none.startswith("no layer was kept")
    assert (logits, "no contributions" in outputs) == ("logits were left out", True)
    assert len(status_notes.notes_on_capture_options(CaptureOptions(NO_LAYERS, False, False), 5, False)) == 2


def test_of_calls() -> None:
    assert status_notes.of_calls({}, [(0, 0), (1, 0)], 2, 7) == ()
    assert status_notes.of_calls({}, [(1, 0), (3, 0)], 4, 7) == ("attention in 2 of 4 layers: 1, 3",)
    (note,) = status_notes.of_calls({}, [(0, 0), (0, 1), (1, 0)], 2, 7)
    assert note == "several attention calls in layers 0: attention[n] is the first, attention[n, 1] the next"
    calls = {(1, 0): call("layers.1.attn"), (3, 0): call("layers.3.attn", keys=11)}
    assert status_notes.of_calls({(1, 0): calls[1, 0]}, [(0, 0), (1, 0)], 2, 7) == ()
    assert "for n of 3:" in status_notes.of_calls(calls, list(calls), 4, 7)[1]


def test_of_model() -> None:
    states = {0: torch.zeros(7, 5), 1: torch.zeros(7, 5)}
    capture = Capture({})
    assert status_notes.of_model(capture, [call("a")], states, 4) == ()
    capture.comparison.add(1e-3, 1e-6, 4)
    capture.contradiction = capture.written_masks = True
    notes = status_notes.of_model(capture, [call("a")], {0: torch.zeros(7, 4, 5)}, 4)
    assert notes[0] == status_notes.OTHER_WEIGHTS
    assert "4 streams side by side" in notes[1]
    assert notes[2] == status_notes.CONTRARY
    assert "masks were written out" in notes[3]
    assert len(notes) == 4
    capture = Capture({})
    capture.comparison.add(1e-3, 1e-3, 4)
    assert status_notes.of_model(capture, [call("a")], states, 4) == (status_notes.OTHER_OUTPUTS,)
    reported = [call("a", kernel=KERNEL)]  # their difference is what the family rounds
    assert status_notes.of_model(capture, reported, states, 4) == (NOTE,)
    assert status_notes.of_model(capture, reported, states, 2) == (NOTE, ROUNDED)
