"""Changes of states by hooks: which layers they meet, and what they leave behind."""

import pytest
import torch
from torch import nn

import regard
from regard.capture.interventions.states import StateChange, StateHooks, change_first_hidden_states


class Layers(nn.Module):
    """Three layers that add their number, as a list; `shared` makes all of them one module."""

    def __init__(self, shared: bool) -> None:
        super().__init__()
        one = nn.Identity()
        self.layers = nn.ModuleList([one] * 3 if shared else [nn.Identity() for _ in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x) + 1
        return x


def run(shared: bool, *changes: StateChange, past: int = 0) -> torch.Tensor:
    model = Layers(shared)
    hooks = StateHooks(model, changes, [("layers", 3)], {}, "three")
    with hooks.opened(past):
        out = model(torch.zeros(2, 4, 5))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    return out


@pytest.mark.parametrize("shared", [False, True])
def test_each_state_is_met_once(shared: bool) -> None:
    rows = torch.full((2, 1), 10.0)
    for number, expected in ((0, 13.0), (1, 13.0), (2, 12.0), (3, 11.0)):
        out = run(shared, StateChange(0, number, 1, (0, 3), rows))
        assert out[1, [0, 3]].unique().tolist() == [expected]
        assert out[0].unique().tolist() == out[1, 1:3].unique().tolist() == [3.0]
    assert run(shared, StateChange(0, 1, 0, None, rows[:1], adds=True))[0].unique().tolist() == [13.0]


def test_positions_are_of_the_whole_text() -> None:
    rows = torch.tensor([[10.0], [20.0], [30.0]])
    out = run(False, StateChange(0, 3, 0, (1, 6, 9), rows), past=6)  # the pass has tokens 6 to 9
    assert out[0, :, 0].tolist() == [21.0, 3.0, 3.0, 31.0]


def test_vectors_of_another_width() -> None:
    with pytest.raises(regard.RegardError, match="given vectors of 7 components, those of three have 5"):
        run(False, StateChange(0, 1, 0, None, torch.zeros(1, 7), adds=True))


def test_the_first_states_of_what_a_module_gives() -> None:
    states = torch.zeros(1, 2, 3)
    assert torch.equal(change_first_hidden_states((None, states, "x"), lambda s: s + 1)[1], states + 1)
    assert change_first_hidden_states({"a": states}, lambda s: s) is None
