"""States of many windows, against the traces of the same texts."""

from typing import Any

import pytest
import torch

from regard.errors import RegardError
from regard.models.states import Window, count_heads, count_layers, read_states, state_width

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


def test_the_last_layer_alone_is_the_contextual_embedding(minilm: Any) -> None:
    for batch in read_states(minilm, windows(minilm), [5]):
        assert batch.maps == []
        for row, n in enumerate(batch.numbers):
            torch.testing.assert_close(batch.states[row, 0], minilm.trace(TEXTS[n]).contextual)


def test_sizes(minilm: Any) -> None:
    assert (count_layers(minilm), count_heads(minilm), state_width(minilm)) == (6, 12, 384)


@pytest.mark.parametrize("layer", [-1, 6])
def test_layers_that_are_not_there(minilm: Any, layer: int) -> None:
    with pytest.raises(RegardError, match=rf"layers: {layer} is out of range, .* has layers 0 to 5"):
        list(read_states(minilm, windows(minilm), [layer]))
