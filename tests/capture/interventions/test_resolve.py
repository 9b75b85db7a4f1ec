"""Interventions translated to what is done to calls and states of a pass."""

import pytest
import torch

import regard
from regard.capture.interventions.resolve import Pass, needs_stacks, resolve
from regard.text.tokens import encoded_ids
from regard.text.words import Word

SOURCE, TARGET = encoded_ids([7, 8, 7, 9]), encoded_ids([3, 4, 5])


def nothing(*_) -> torch.Tensor:
    raise AssertionError


def place(paired: bool) -> Pass:
    stacks = [("encoder", 2), ("decoder", 3)] if paired else [("layers", 2)]
    return Pass(SOURCE, TARGET if paired else None, 1, "m", stacks, nothing)


def test_each_in_its_order_and_place() -> None:
    vector = torch.ones(6)
    changes = resolve(
        [
            regard.steer(vector, layer=0, at="7", strength=3.0),
            regard.ablate(regard.head(1, 2)),
            regard.patch("hidden_states", layer=1, source="zero"),
            regard.patch("values", layer=0, head=1, at=2, source="zero"),
        ],
        place(False),
    )
    push, states = changes.states
    assert (push.number, push.text, push.positions, push.adds) == (1, 1, (0, 2), True)
    assert torch.equal(push.rows, 3 * vector[None])
    assert (states.number, states.positions, states.adds) == (2, (0, 1, 2, 3), False)
    ablated, values = changes.calls
    assert (ablated.layers, ablated.change.heads, ablated.change.batch) == ((1,), (2,), (1,))
    assert (values.layers, values.change.heads, values.change.batch) == ((0,), (1,), (1,))


def test_the_ends_of_an_edge() -> None:
    def ends(query, key):
        (call,) = resolve([regard.ablate(regard.edge(query, key))], place(False)).calls
        return call.change.queries, call.change.keys

    assert ends("7", 3) == ((0, 2), (3,))
    assert ends(("7", 1), ("7", 0)) == ((2,), (0,))
    assert ends(Word("every token", 0, 0, (3, 0)), "8") == ((0, 3), (1,))
    for end in (4, -1):
        with pytest.raises(regard.RegardError, match=f"interventions: token {end} is out of range, the text has tok"):
            ends(0, end)


def test_each_part_has_its_text() -> None:
    def only(part: str, what: str):
        changes = resolve([regard.patch(what, layer=1, source="zero", part=part)], place(True))
        return (*changes.states, *changes.calls)[0]

    assert [len(only(part, "values").change.positions) for part in ("encoder", "decoder", "cross")] == [4, 3, 4]
    assert [len(only(part, "head_outputs").change.positions) for part in ("encoder", "decoder", "cross")] == [4, 3, 3]
    assert [(s.stack, len(s.positions)) for s in (only(part, "hidden_states") for part in ("encoder", "decoder"))] == [
        (0, 4),
        (1, 3),
    ]
    with pytest.raises(regard.RegardError, match="layer 2 is out of range, m has layers 0 to 1 of the encoder"):
        resolve([regard.steer(torch.ones(6), layer=2, part="encoder")], place(True))
    with pytest.raises(regard.RegardError, match="m is an encoder-decoder: say which attention is meant"):
        resolve([regard.steer(torch.ones(6), layer=2)], place(True))


def test_which_need_to_know_the_stacks() -> None:
    of_calls = [regard.ablate(regard.head(1, 2)), regard.patch("values", layer=0, source="zero")]
    assert not needs_stacks(of_calls)
    assert needs_stacks([*of_calls, regard.patch("feed_forward", layer=0, source="zero")])
