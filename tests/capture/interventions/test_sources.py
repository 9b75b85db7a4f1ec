"""What a patch takes from traces."""

import pytest
import torch

import regard
from regard.capture.interventions.sources import head_outputs, rows_of
from regard.models.model import Model
from tests.support.attention_outputs import make_model

IDS = torch.randint(1, 101, (2, 11), generator=torch.Generator().manual_seed(5))
TARGET = IDS[1, :7].flip(0)


def nothing(*_) -> torch.Tensor:
    raise AssertionError


def test_the_outputs_of_heads_are_those_of_the_pass() -> None:
    """To the bit: they come from the same kernel."""
    model = Model(make_model("marian"), None, name="marian")
    with regard.record(keep=("value", "output")) as calls:
        pair = model.trace(ids=IDS[0], target_ids=TARGET)
    outputs = [call.output for call in calls.values()]
    found = [head_outputs(pair.encoder, n) for n in range(2)]
    for n in range(2):
        found += [head_outputs(pair.decoder, n), head_outputs(pair.decoder, n, part="cross")]
    assert [torch.equal(a, b[0]) for a, b in zip(found, outputs, strict=True)] == [True] * 6


def test_rows_of_the_source() -> None:
    model = Model(make_model("llama", num_key_value_heads=2), None, name="llama")
    first, second = (model.trace(ids=row) for row in IDS)

    def rows(what: str, **named) -> torch.Tensor:
        patch = regard.patch(what, **{"layer": 1, "at": [2, 5], "source": first} | named)
        return rows_of(patch, 2, 11, nothing)

    assert torch.equal(rows("hidden_states")[0], first.hidden_states[2][[2, 5]])
    assert torch.equal(rows("hidden_states", layer="input")[0], first.hidden_states[0][[2, 5]])
    assert torch.equal(rows("values"), first.values[1][:, [2, 5]])
    assert torch.equal(rows("values", head=1), first.values[1][1:, [2, 5]])
    assert torch.equal(rows("weights", head=4)[0], first.attention[1][4, [2, 5]])
    mean = rows("hidden_states", source=[first, second], source_at=[3, 4])[0]
    assert torch.equal(mean, (first.hidden_states[2][3:5] + second.hidden_states[2][3:5]) / 2)
    with pytest.raises(regard.RegardError, match="patch: head 2 is out of range, the source has key heads 0 to 1"):
        rows("values", head=2)


def test_a_source_that_does_not_hold_it(tmp_path) -> None:
    model = Model(make_model("gpt2"), None, name="gpt2")
    some = model.trace(ids=IDS[0], layers=1)
    with pytest.raises(regard.RegardError, match=r"attention\[0\] was not kept"):
        model.trace(ids=IDS[0], interventions=[regard.patch("head_outputs", layer=0, source=some)])
    ablated = model.trace(ids=IDS[0], interventions=[regard.ablate(regard.head(0, 1))])
    ablated.save(tmp_path / "a.safetensors")
    opened = regard.open(tmp_path / "a.safetensors")
    assert torch.equal(head_outputs(ablated, 0)[1], torch.zeros(11, 8))
    with pytest.raises(regard.RegardError, match="a saved trace does not hold the outputs of heads that were ablated"):
        head_outputs(opened, 0)
