"""Ablations in `attend`: which calls they apply to, what they do to heads and edges, and what is refused."""

import threading
from contextvars import copy_context
from typing import Any

import pytest
import torch

import regard
from regard.attention.ablation import EdgeAblation, HeadAblation, ablating, open_blocks
from regard.attention.recording import scope
from tests.attention.cases import random


def test_which_calls_a_cut_holds_for() -> None:
    x = random(0, 1, 3, 2)
    paths = ["encoder.layer.0", "encoder.layer.1", "decoder.layer.1.self", "decoder.layer.1.self", "decoderless.2", ""]

    def cut_calls(*layers: Any) -> list[int]:
        with ablating([HeadAblation(layers=layers or None)]), regard.record(keep=["output"]) as calls:
            for path in paths:
                with scope(path):
                    regard.attend(x, x, x)
        assert [call.ablations != () for call in calls.values()] == [not call.output.any() for call in calls.values()]
        return [n for n, call in enumerate(calls.values()) if call.ablations]

    assert cut_calls() == [0, 1, 2, 3, 4, 5]
    assert cut_calls(1) == [1, 2, 3]
    assert cut_calls(2, 0) == [0, 4]
    assert cut_calls("encoder.layer.1") == [1]
    assert cut_calls("decoder") == [2, 3]
    assert cut_calls(("decoder.layer.1.self", 1)) == [3]
    assert cut_calls("decoder.layer") == [2, 3]
    assert cut_calls("layer.1", 7, ("decoder", 0)) == []


def test_calls_by_other_names_than_their_paths() -> None:
    """Names are asked for once a call, in order, and take the place of paths and their numbers."""
    x, asked = random(0, 1, 3, 2), []

    def name(path: str, nth: int) -> str:
        asked.append((path, nth))
        return f"self.{len(asked) - 1}" if path == "layer.7" else ""

    cuts = [
        HeadAblation(layers={"self.1"}),
        HeadAblation(layers={7}),
        HeadAblation(layers={"layer.7"}),
        EdgeAblation(layers={"self"}),
    ]
    with ablating(cuts, name) as block, regard.record() as calls:
        for path in ("layer.7", "layer.7", "other"):
            with scope(path):
                regard.attend(x, x, x)
    assert asked == [("layer.7", 0), ("layer.7", 1), ("other", 0)]
    assert [call.ablations for call in calls.values()] == [(cuts[3],), (cuts[0], cuts[3]), ()]
    assert block.unmet == (cuts[1], cuts[2])


def test_cuts_that_met_no_call_are_named() -> None:
    x, cuts = (
        random(0, 1, 3, 2),
        [HeadAblation(layers={0}), HeadAblation(layers={7}), EdgeAblation(layers={"layer.9"}, keys=[0])],
    )
    with ablating(cuts) as block:
        assert block.unmet == tuple(cuts)
        with scope("layer.0"):
            regard.attend(x, x, x)
        assert block.unmet == (cuts[1], cuts[2])


def test_nested_cuts_add_up_and_end_with_their_blocks() -> None:
    query = torch.zeros(1, 2, 4, 3)
    outer, inner = EdgeAblation(queries=[0], keys=[0]), EdgeAblation(queries=[0], keys=[1])

    def row() -> list[float]:
        with regard.record() as calls:
            result = regard.attend(query, query, query)
        assert torch.equal(calls["", 0].weights[...], result.weights[...])
        return result.weights[0, 0, 0].tolist()

    with ablating([outer]):
        assert row() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
        with ablating([inner, HeadAblation(heads=[1])]):
            assert row() == pytest.approx([0, 0, 0.5, 0.5])
        assert row() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    assert row() == [0.25] * 4
    with pytest.raises(ZeroDivisionError), ablating([outer]):
        raise ZeroDivisionError
    assert open_blocks.get() == ()


def test_other_threads_see_no_cuts() -> None:
    x, found = random(0, 1, 3, 2), []
    with ablating([HeadAblation()]):
        thread = threading.Thread(target=lambda: found.append(bool(regard.attend(x, x, x).output.any())))
        thread.start()
        thread.join()
        copied = copy_context()
        assert not regard.attend(x, x, x).output.any()
    assert found == [True]
    assert not copied.run(lambda: regard.attend(x, x, x).output.any())
