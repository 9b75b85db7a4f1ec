"""How far a trace is from reported weights and states, and where."""

import math

import pytest
import torch

from regard.models.model import Model
from regard.questions.check.differences import (
    distance,
    own_states_apart,
    own_weights_apart,
    result_apart,
    states_apart,
    weights_apart,
)  # fmt: skip
from regard.questions.check.own_code import OwnPass, own_pass
from regard.trace.trace import PairTrace, Trace
from tests.capture.test_families import DECODERS, IDS, PAIRS, TARGET, tiny


def of_one() -> tuple[Trace, OwnPass]:
    model = tiny("gpt2", DECODERS["gpt2"], language=True)
    inputs = {"input_ids": torch.tensor([IDS]), "use_cache": False}
    return Model(model, None, name="gpt2").trace(ids=IDS), own_pass(model, inputs)


def of_pair() -> tuple[PairTrace, OwnPass]:
    model = tiny("bart", PAIRS["bart"])
    inputs = {"input_ids": torch.tensor([IDS]), "decoder_input_ids": torch.tensor([TARGET]), "use_cache": False}
    return Model(model, None, name="bart").trace(ids=IDS, target_ids=TARGET), own_pass(model, inputs)


@pytest.mark.parametrize(
    ("side", "layer", "where"),
    [
        ("", 1, "layer 1, head 3: “41” to “17”"),
        ("encoder_", 0, "layer 0, head 3 of the encoder: “41” to “17”"),
        ("decoder_", 2, "layer 2, head 3 of the decoder: “7” to “8”"),
        ("cross_", 2, "layer 2, head 3 of the cross-attention: “7” to “17”"),
    ],
)
def test_a_weight_that_is_off_is_found_and_named(side: str, layer: int, where: str) -> None:
    trace, own = of_pair() if side else of_one()
    near = weights_apart(trace, own)
    assert near is not None
    assert near.difference < 1e-6
    own.weights[side][layer][0, 3, 4, 1] += 0.25
    apart = weights_apart(trace, own)
    assert apart is not None
    assert apart.difference == pytest.approx(0.25, abs=1e-6)
    assert apart.where == where
    own.weights[side][layer][0, 0, 0, 0] = math.nan
    assert weights_apart(trace, own).difference == math.inf  # type: ignore[union-attr]


def test_states_and_results_that_are_off_are_found_in_parts_of_their_largest_number() -> None:
    trace, own = of_one()
    assert own.last is None  # the logits stand for it
    own.states[""][1][0, 2, 5] += 7.0
    apart = states_apart(trace, own)
    assert apart is not None
    assert apart.difference == pytest.approx(7 / float(own.states[""][1].abs().max()), rel=1e-3)
    assert apart.where == "what enters layer 1 at “3”"
    assert own.logits is not None
    own.logits[0, 6, 1] -= 50.0
    result = result_apart(trace, own)
    assert result is not None
    assert result.where == "the logits at “2”"
    assert result.difference == pytest.approx(50 / float(own.logits.abs().max()), rel=1e-3)


def test_other_numbers_of_layers_and_shapes_are_infinitely_far() -> None:
    trace, own = of_one()
    short = OwnPass({"": own.weights[""][:1] * 3}, own.states, own.last, own.logits)
    assert weights_apart(trace, short) == (math.inf, "2 layers have weights here, 3 in its own code")
    cut = OwnPass({"": [each[..., :3] for each in own.weights[""]]}, own.states, own.last, own.logits)
    assert weights_apart(trace, cut).difference == math.inf  # type: ignore[union-attr]
    assert weights_apart(trace, OwnPass({}, {}, None, None)) is None
    assert states_apart(trace, OwnPass({}, {}, None, None)) is None
    assert result_apart(trace, OwnPass({}, {}, None, None)) is None


def test_two_passes_of_own_code() -> None:
    _, own = of_one()
    other = OwnPass({"": [each + 0.5 for each in own.weights[""]]}, own.states, own.last, own.logits)
    assert own_weights_apart(own, other) == pytest.approx(0.5)
    assert own_states_apart(own, own) == 0
    assert own_weights_apart(own, OwnPass({}, {}, None, None)) is None
    assert distance(torch.tensor([3.0, math.nan]), torch.tensor([3.0, 1.0])) == math.inf
    assert distance(torch.tensor([0.25]), torch.tensor([0.5])) == 0.25
    assert distance(torch.tensor([6.0]), torch.tensor([8.0])) == 0.25
