"""What a status says of a model that computes in half precision: how far it is from float32 arithmetic."""

from pathlib import Path

import pytest
import torch
import transformers
from torch import nn

import regard
from regard.model_files.stored_weight import StoredWeight
from tests.capture.test_families import DECODERS, IDS, tiny
from tests.support import make_tiny
from tests.support.attention_outputs import make_model


@pytest.mark.parametrize("dtype", ["bfloat16", torch.float16])
def test_half_precision_says_how_far_it_is_from_float32(minilm, tmp_path: Path, dtype) -> None:
    """The difference of weights that the status tells is that to a copy in float32, weights rounded alike."""
    make_tiny(tmp_path, minilm)
    opened = regard.load(tmp_path, device="cpu", dtype=dtype)
    trace = opened.trace("A bank by a river.")
    name = trace.status.dtype
    assert name in str(dtype)
    wide = transformers.AutoModel.from_pretrained(tmp_path, dtype=getattr(torch, name)).float()
    exact = regard.load(wide, tokenizer=opened.tokenizer).trace("A bank by a river.")
    apart = max(
        float((a.dense() - b.dense()).abs().max()) for a, b in zip(trace.attention, exact.attention, strict=True)
    )
    assert all(each in trace.status.notes[0] for each in (f"computes in {name}", f"up to {apart:.1e} and"))
    assert apart > 1e-6
    assert opened.trace("Another text.").status.notes[0] == trace.status.notes[0]  # measured once
    assert not any("computes in" in note for note in exact.status.notes)


def test_a_model_in_half_precision_is_left_as_it_is() -> None:
    model = tiny("llama", DECODERS["llama"], language=True).to(torch.bfloat16)
    model.register_buffer("own", torch.ones(3, dtype=torch.bfloat16))
    before = dict((*model.named_parameters(), *model.named_buffers()))
    written = regard.load(model).generate(ids=IDS, max_new_tokens=2).trace.status.notes
    assert any("computes in bfloat16" in note for note in written)
    after = dict((*model.named_parameters(), *model.named_buffers()))
    assert after.keys() == before.keys()
    assert all(after[name] is each for name, each in before.items())


@pytest.mark.parametrize("family", ["llama", "gpt2", "bert", "modernbert", "t5", "mpnet"])
def test_autocast_computes_as_the_plain_model_under_it_and_says_so(family: str) -> None:
    plain = make_model(family)
    plain.set_attn_implementation("sdpa")
    model, ids = regard.load(plain), torch.tensor([IDS])
    asked = {"ids": IDS, "target_ids": IDS} if model.pairs else {"ids": IDS}
    before = model.trace(**asked).sides[-1]
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        expected = plain(ids, **({"decoder_input_ids": ids} if model.pairs else {}))[0][0].float()
        trace = model.trace(**asked).sides[-1]
    apart = (trace.last_hidden_state.float() - expected).abs().max() / expected.abs().max()
    assert apart < 2 * torch.finfo(torch.bfloat16).eps
    assert (before.last_hidden_state - expected).abs().max() > 0
    assert trace.status.dtype == "bfloat16 (autocast)"
    assert trace.status.notes[0].startswith("The model computes in bfloat16 (autocast).")
    assert family == "mpnet" or trace.status.difference < 1e-6
    after = model.trace(**asked).sides[-1]
    assert torch.equal(after.last_hidden_state, before.last_hidden_state)
    assert after.status.dtype == "float32"
    assert not any("computes in" in note for note in after.status.notes)


def test_half_precision_that_float32_cannot_replace_is_told() -> None:
    class Stubborn(nn.Linear):
        def forward(self, x):
            if x.dtype != torch.bfloat16:
                raise RuntimeError("bfloat16 alone")
            return super().forward(x)

    model = tiny("llama", DECODERS["llama"], language=True)
    model.model.layers[1].mlp.up_proj = Stubborn(32, 48, bias=False)
    notes = regard.load(model.to(torch.bfloat16)).trace(ids=IDS).status.notes
    assert "(bfloat16 alone)" in notes[0]
    assert not any(isinstance(each, StoredWeight) for each in model.parameters())
