"""States of many windows, against the traces of the same texts."""

from typing import Any

import pytest
import torch

from regard.capture.session import Session
from regard.errors import RegardError
from regard.models.model import Model
from regard.models.states import StateBatch, Window, count_heads, count_layers, read_states, state_width
from tests.support.attention_outputs import make_model

TEXTS = ["A bank.", "Another bank stood there.", "We sat on the river bank.", "A boat."]


def windows(model: Any) -> list[Window]:
    return [Window([token.id for token in model.trace(text).tokens]) for text in TEXTS]


def test_states_and_maps_are_those_of_the_traces(minilm: Any) -> None:
    traces, seen = minilm.trace(TEXTS), set()
    for batch in read_states(minilm, windows(minilm), [0, 3, 5], attention=True):
        assert len({len(traces[n].tokens) for n in batch.numbers}) == 1  # nothing is padded
        for row, n in enumerate(batch.numbers):
            seen.add(n)
            for place, layer in enumerate((0, 3, 5)):
                torch.testing.assert_close(batch.states[row, place], traces[n].hidden_states[layer + 1])
            for layer, weights in enumerate(batch.maps):
                torch.testing.assert_close(weights.dense()[row], traces[n].attention[layer].dense())
    assert seen == set(range(len(TEXTS)))


def test_sizes(minilm: Any) -> None:
    assert (count_layers(minilm), count_heads(minilm), state_width(minilm)) == (6, 12, 384)


@pytest.mark.parametrize("layer", [-7, 6])
def test_layers_that_are_not_there(minilm: Any, layer: int) -> None:
    with pytest.raises(RegardError, match=rf"layer {layer} is out of range: .* has layers 0 to 5"):
        list(read_states(minilm, windows(minilm), [layer]))


LENGTHS = [3, 7, 3, 11, 7, 2]


def own_windows() -> list[Window]:
    draws = torch.Generator().manual_seed(0)
    return [Window(torch.randint(1, 101, (length,), generator=draws).tolist()) for length in LENGTHS]


def check_against_traces(model: Model, found: list[StateBatch]) -> None:
    seen = set()
    for batch in found:
        for row, n in enumerate(batch.numbers):
            trace = model.trace(ids=own_windows()[n].ids)
            seen.add(n)
            for place, expected in enumerate((trace.hidden_states[1], trace.last_hidden_state)):
                torch.testing.assert_close(batch.states[row, place], expected, atol=1e-5, rtol=1e-5)
                torch.testing.assert_close(batch.maps[place].dense()[row], trace.attention[place].dense())
    assert seen == set(range(len(LENGTHS)))


@pytest.mark.parametrize("family", ["bert", "albert", "roberta", "gpt2"])
def test_windows_of_one_length_are_read_together(family: str, monkeypatch: Any) -> None:
    model = Model(make_model(family), None, name=family)
    rows: list[int] = []
    run = Session.run

    def counted(self: Session, sources: Any, *rest: Any) -> Any:
        rows.append(len(sources))
        return run(self, sources, *rest)

    monkeypatch.setattr(Session, "run", counted)
    found = list(read_states(model, own_windows(), [0, 1], attention=True))
    assert rows == [1, 2, 2, 1]  # the shortest first
    check_against_traces(model, found)
