"""A model's own eager code: as transformers runs it, in float64, and with something changed in it."""

import pytest
import torch

from regard.errors import RegardError
from regard.questions.check import own_code
from regard.questions.check.own_code import Changes, changed_pass, computing_in_float64, own_pass, plain_pass
from tests.capture.test_families import DECODERS, IDS, PAIRS, TARGET, tiny
from tests.support.own_models import opened

INPUTS = {"input_ids": torch.tensor([IDS]), "use_cache": False}


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gpt_oss"])
def test_weights_and_states_are_what_transformers_reports(kind: str) -> None:
    model = tiny(kind, DECODERS[kind], language=True)
    setting = model.config._attn_implementation
    found, plain = own_pass(model, INPUTS), plain_pass(model, INPUTS)
    assert model.config._attn_implementation == setting
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(**INPUTS, output_attentions=True, output_hidden_states=True)
    assert all(torch.equal(*pair) for pair in zip(found.weights[""], expected.attentions, strict=True))
    assert all(torch.equal(*pair) for pair in zip(found.states[""], expected.hidden_states, strict=True))
    torch.testing.assert_close(found.result, expected.logits, atol=0, rtol=0)
    torch.testing.assert_close(plain.result, expected.logits, atol=2e-5, rtol=0)


def test_sides_of_a_pair() -> None:
    inputs = {"input_ids": torch.tensor([IDS]), "decoder_input_ids": torch.tensor([TARGET]), "use_cache": False}
    found = own_pass(tiny("marian", PAIRS["marian"]), inputs)
    assert {side: len(layers) for side, layers in found.weights.items()} == {"encoder_": 2, "decoder_": 3, "cross_": 3}
    assert found.weights["cross_"][0].shape == (1, 4, len(TARGET), len(IDS))
    assert found.result.shape == (1, len(TARGET), 32)


@pytest.mark.parametrize("room", [None, 0])  # all weights at once, a module at a time
@pytest.mark.parametrize("kind", ["gpt2", "gemma2", "opt"])
def test_in_float64_it_is_a_model_in_float64_and_its_weights_come_back(
    kind: str, room: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_code, "available", lambda _: room)
    model = tiny(kind, DECODERS[kind], language=True)
    before = dict(model.named_parameters()) | dict(model.named_buffers())
    found = own_pass(model, INPUTS, widened=True)
    after = dict(model.named_parameters()) | dict(model.named_buffers())
    assert all(after[name] is tensor for name, tensor in before.items())
    assert found.result.dtype == torch.float64
    expected = own_pass(model.double(), INPUTS)
    torch.testing.assert_close(found.result, expected.result, atol=1e-6, rtol=0)


@pytest.mark.parametrize("room", [None, 0])
def test_weights_come_back_after_an_error(room: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_code, "available", lambda _: room)
    model = tiny("gpt2", DECODERS["gpt2"])
    before = dict(model.named_parameters())
    with pytest.raises(RuntimeError, match="stop"), computing_in_float64(model):
        model.h[0].register_forward_hook(_stop)
        model(**INPUTS)
    assert all(each is before[name] and each.dtype == torch.float32 for name, each in model.named_parameters())


def _stop(*_: object) -> None:
    raise RuntimeError("stop")


def test_nothing_changed_is_its_own_code_and_a_silenced_head_is_one_without_columns_behind_it() -> None:
    model = tiny("gpt2", DECODERS["gpt2"], language=True)
    same = changed_pass(model, INPUTS, Changes())
    torch.testing.assert_close(same.result, own_pass(model, INPUTS).result, atol=1e-6, rtol=0)

    def silent(output: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        output[:, :, 2] = 0.0
        return output

    found = changed_pass(model, INPUTS, Changes(after={1: silent}))
    with torch.no_grad():
        model.transformer.h[1].attn.c_proj.weight[16:24] = 0.0  # head 2 of width 8, as rows of a Conv1D
    torch.testing.assert_close(found.result, own_pass(model, INPUTS).result, atol=1e-6, rtol=0)
    assert float((found.result - same.result).abs().max()) > 1e-3


def test_what_cannot_be_run_is_refused() -> None:
    model = tiny("gpt2", DECODERS["gpt2"])
    with pytest.raises(RegardError, match="attention call 7 was not made: 2 were"):
        changed_pass(model, INPUTS, Changes(after={7: lambda output, _: output}))
    with pytest.raises(RegardError, match=r"its own code does not run so: index out of range"):
        own_pass(model, INPUTS | {"position_ids": torch.tensor([[99] * len(IDS)])})
    with pytest.raises(RegardError, match=r"its code is regard's"):
        own_pass(opened("gpt").model, INPUTS)
