"""Steering adds a vector to the states that leave a layer: as a hook written by hand on the eager model does."""

import copy

import pytest
import torch

import regard
from regard.models.model import Model
from tests.support import hand_hooks, own_models
from tests.support.attention_outputs import make_model

RIVER, MONEY = "We sat on the quiet river bank.", "Money is in the bank."
IDS = torch.randint(1, 101, (2, 11), generator=torch.Generator().manual_seed(5))


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return float((a - b).abs().max()) <= 1e-5 * max(1.0, float(b.abs().max()))


def test_it_is_what_a_hook_does_on_minilm(minilm) -> None:
    eager = copy.deepcopy(minilm.model).eval()
    eager.set_attn_implementation("eager")
    inputs, vector = minilm.tokenizer(RIVER, return_tensors="pt"), torch.randn(384)
    for at, places in ((None, list(range(10))), ("bank", [7])):
        rows = (2.5 * vector).expand(len(places), -1)
        expected = hand_hooks.bert(eager, 3).patched("hidden_states", places, rows, adds=True, **inputs)
        found = minilm.trace(RIVER, interventions=[regard.steer(vector, layer=3, at=at, strength=2.5)])
        assert close(found.last_hidden_state, expected.last_hidden_state[0])
    assert found.status.notes == ("steered: output of layer 3 at “bank”, by 2.5 × a given vector",)


def test_the_vector_of_two_texts(minilm) -> None:
    river, money = minilm.trace(RIVER), minilm.trace(MONEY)
    expected = river.hidden_states[4].mean(0) - money.hidden_states[4].mean(0)
    assert torch.equal(regard.steering_vector(river, money, layer=3), expected)
    entering = river.hidden_states[0].mean(0) - money.hidden_states[0].mean(0)
    assert torch.equal(regard.steering_vector(river, money, layer="input"), entering)
    by_traces = minilm.trace("A bank", interventions=[regard.steer((river, money), layer=3, strength=2)])
    by_vector = minilm.trace("A bank", interventions=[regard.steer(expected, layer=3, strength=2)])
    assert torch.equal(by_traces.last_hidden_state, by_vector.last_hidden_state)
    plain = minilm.trace("A bank")
    assert close(by_traces.hidden_states[4] - plain.hidden_states[4], (2 * expected).expand(4, -1))
    assert f"by 2 × (the mean state of {RIVER!r} less that of {MONEY!r})" in by_traces.status.notes[-1]


def test_pushes_add_up_and_a_patch_after_them_counts(minilm) -> None:
    plain, vector = minilm.trace(RIVER), torch.randn(384)

    def last(*interventions) -> torch.Tensor:
        return minilm.trace(RIVER, interventions=interventions).last_hidden_state

    push, back = regard.steer(vector, layer=2), regard.steer(vector, layer=2, strength=-1.0)
    assert close(last(push, back), plain.last_hidden_state)
    own = regard.patch("hidden_states", layer=2, source=plain)
    assert torch.equal(last(push, own), plain.last_hidden_state)
    assert torch.equal(last(own, push), last(push))


def test_each_side_of_an_encoder_decoder() -> None:
    opened = Model(make_model("marian"), None, name="marian")
    target, vector = IDS[1, :7], torch.randn(24)
    inputs = {"input_ids": IDS[:1], "decoder_input_ids": target[None]}
    for part, length in (("encoder", 11), ("decoder", 7)):
        hands = hand_hooks.marian(make_model("marian"), 0, part)
        rows = vector.expand(length, -1)
        expected = hands.patched("hidden_states", list(range(length)), rows, adds=True, **inputs)
        steered = opened.trace(ids=IDS[0], target_ids=target, interventions=[regard.steer(vector, layer=0, part=part)])
        assert close(steered.decoder.last_hidden_state, expected.last_hidden_state[0])
    pair = opened.trace(ids=IDS[0], target_ids=target)
    assert regard.steering_vector(pair, pair, layer=0, part="decoder").abs().max() == 0
    with pytest.raises(regard.RegardError, match="given pairs of texts: say part="):
        regard.steering_vector(pair, pair, layer=0)


def test_a_transformer_of_ours() -> None:
    model = own_models.opened("gpt")
    plain, vector = model.trace("A man is money"), torch.randn(12)
    steered = model.trace("A man is money", interventions=[regard.steer(vector, layer="input", at=2)])
    assert close(steered.hidden_states[0][2], plain.hidden_states[0][2] + vector)
    assert torch.equal(steered.hidden_states[0][[0, 1, 3]], plain.hidden_states[0][[0, 1, 3]])


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_cannot_be_is_refused_in_one_line(minilm) -> None:
    vector, trace = torch.randn(384), minilm.trace(RIVER)
    for make, says in (
        (lambda: regard.steer(torch.randn(2, 3), layer=1), r"given a tensor of shape \(2, 3\), needs a vector"),
        (lambda: regard.steer([trace], layer=1), "steer: given list, needs a vector \\(M,\\) or two traces"),
        (lambda: regard.steer(vector * torch.nan, layer=1), "the vector holds NaN or infinity"),
        (lambda: regard.steer(vector, layer=1, strength="x"), "strength: given 'x', needs a number"),
        (lambda: regard.steer(vector, layer=1, part="cross"), 'hidden states belong to "encoder" or "decoder"'),
        (lambda: regard.steer((trace, 3), layer=1), "steering_vector: given int, needs two traces"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            make()
    for steer, says in (
        (regard.steer(torch.randn(7), layer=1), "given vectors of 7 components, those of .* have 384"),
        (regard.steer(vector, layer=6), "layer 6 is out of range, .* has layers 0 to 5"),
        (regard.steer(vector, layer=1, at="lake"), "word 'lake' is not in the text"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            minilm.trace(RIVER, interventions=[steer])
