"""What plain passes show of a model: its stacks of layers, and the feed-forward outputs of a trace."""

import pytest
import torch

import regard
from regard.models.model import Model
from tests.support.attention_outputs import make_model

IDS = torch.randint(1, 101, (2, 11), generator=torch.Generator().manual_seed(5))


def test_stacks_are_learned_once() -> None:
    model = Model(make_model("marian"), None, name="marian")
    passes = []
    model.model.register_forward_hook(lambda *_: passes.append(1))
    steer = [regard.steer(torch.zeros(24), layer=1, part="decoder")]
    for _ in range(3):
        model.trace(ids=IDS[0], target_ids=IDS[1], interventions=steer)
    assert len(passes) == 4
    read = model._reader.read("text", None, IDS)[1]
    assert model._session.layout.stacks(read[0], read[1]) == [("encoder.layers", 2), ("decoder.layers", 2)]


def test_a_source_whose_states_do_not_come_again() -> None:
    model = Model(make_model("gpt2"), None, name="gpt2")
    steered = model.trace(ids=IDS[0], interventions=[regard.steer(torch.ones(24), layer=0)])
    with pytest.raises(regard.RegardError, match="gpt2 gives other states .* traced with interventions"):
        model.trace(ids=IDS[0], interventions=[regard.patch("feed_forward", layer=1, source=steered)])
