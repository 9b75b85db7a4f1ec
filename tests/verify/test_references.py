"""The model's own eager code: what it returns, that the model stays as it is, and how differences are found."""

import pytest
import torch
from transformers.modeling_outputs import BaseModelOutput

from regard.errors import RegardError
from regard.models.model import Model
from regard.verify.references import STATES, WEIGHTS, CheckedInput, largest_difference, layers
from tests.capture.test_families import DECODERS, IDS, PAIRS, TARGET, tiny


def reading(kind: str) -> CheckedInput:
    return CheckedInput(Model(tiny(kind, DECODERS[kind], language=True), None, name=kind), {"ids": IDS})


@pytest.mark.parametrize("kind", ["gpt2", "gemma2", "gpt_oss"])
def test_passes_are_those_of_the_eager_model_and_of_one_in_float64(kind: str) -> None:
    found = reading(kind)
    model = found.model.model
    model.set_attn_implementation("eager")
    asked = {"output_attentions": True, "output_hidden_states": True}
    for own, dtype in ((found.output, torch.float32), (found.exact, torch.float64)):
        if own is None:
            assert kind == "gpt_oss"  # its experts insist on float32
            continue
        with torch.no_grad():
            expected = model.to(dtype)(torch.tensor([IDS]), **asked)
        torch.testing.assert_close(own.logits, expected.logits, atol=1e-6, rtol=0)
        torch.testing.assert_close(own.attentions, expected.attentions, atol=1e-6, rtol=0)


def test_a_head_is_ablated_by_zeros_in_the_output_projection() -> None:
    found = reading("gpt2")
    projection = found.model.model.transformer.h[1].attn.c_proj  # a Conv1D: rows are inputs
    before = projection.weight.clone()
    ablated = found.without_head(projection.weight.t(), slice(16, 24))
    assert torch.equal(projection.weight, before)
    with torch.no_grad():
        projection.weight[16:24] = 0.0
        expected = found.model.model(torch.tensor([IDS])).logits
    torch.testing.assert_close(ablated.logits, expected, atol=1e-5, rtol=0)
    assert (ablated.logits - found.output.logits).abs().max() > 1e-3
    with pytest.raises(RegardError, match="none of its modules"):
        found.without_head(torch.zeros(32, 32), slice(0, 8))


def test_differences_name_their_place_and_nan_is_infinite() -> None:
    ours, own = torch.zeros(1, 2, 3, 3), torch.zeros(1, 2, 3, 3)
    own[0, 1, 2, 0] = 0.5
    one, other = BaseModelOutput(attentions=(ours, ours)), BaseModelOutput(attentions=(ours, own))
    assert largest_difference(one, other, WEIGHTS) == (0.5, "attentions[1][0, 1, 2, 0]")
    assert largest_difference(one, other, STATES) is None
    assert largest_difference(one, BaseModelOutput(attentions=(own * torch.nan,) * 2), WEIGHTS)[0] > 1e30  # type: ignore[index]
    with pytest.raises(RegardError, match="its own code returns 2 attentions, 3 were traced"):
        largest_difference(BaseModelOutput(attentions=(ours,) * 3), other, WEIGHTS)


def test_layers_of_a_pair_have_their_maps_and_own_weights() -> None:
    asked = {"ids": IDS, "target_ids": TARGET}
    found = CheckedInput(Model(tiny("marian", PAIRS["marian"]), None, name="marian"), asked)
    seen = list(layers(found.trace, found.output))
    assert [each.part for each in seen] == [None] * 5 + ["cross"] * 3
    for each in seen:
        torch.testing.assert_close(each.map.dense(), each.weights, atol=1e-5, rtol=0)


def test_what_its_code_raises_is_a_reason() -> None:
    with pytest.raises(RegardError, match="its own eager code raises IndexError"):
        reading("gpt2").run({"input_ids": torch.tensor([IDS]), "position_ids": torch.tensor([[99] * len(IDS)])})
