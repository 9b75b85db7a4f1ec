"""A checkpoint fills its model, or is refused: what is missing, misshapen, unused, or no number."""

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
import transformers

import regard
from regard.errors import RegardError
from regard.model_files.stored_weight import StoredWeight
from regard.models import read_checkpoint
from regard.models.read_checkpoint import stored_tensors
from tests.models.test_load import refused, tiny
from tests.support import make_tiny

__all__ = ["tiny"]  # a fixture


def test_missing_and_misshapen_tensors(tiny: Path) -> None:
    weights = tiny / "model.safetensors"
    tensors = safetensors.torch.load_file(weights)
    gone = dict(tensors)
    del gone["encoder.layer.1.attention.self.key.weight"]
    safetensors.torch.save_file(gone, weights, {"format": "pt"})
    refused(tiny, "is not whole: 1 tensors are missing.*layer.1.attention.self.key.weight")
    tensors["encoder.layer.0.attention.self.key.weight"] = torch.zeros(2, 3)
    safetensors.torch.save_file(tensors, weights, {"format": "pt"})
    refused(tiny, r"has shape \(2, 3\), its config needs \(24, 24\)")


HEADS = {
    "bert": "BertForMaskedLM",
    "mpnet": "MPNetForMaskedLM",
    "roberta": "RobertaForMaskedLM",
    "distilbert": "DistilBertForMaskedLM",
    "llama": "LlamaForCausalLM",
    "gpt2": "GPT2LMHeadModel",
}


@pytest.mark.parametrize("kind", HEADS)
def test_a_checkpoint_without_the_head_its_config_names(kind: str, minilm, tmp_path: Path) -> None:
    """The bare model is read, with a note; as many sentence encoders are kept."""
    model = make_tiny(tmp_path, minilm, kind, tie_word_embeddings=False)
    expected = regard.load(tmp_path, device="cpu").trace("a bank").last_hidden_state
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": [HEADS[kind]]}))
    trace = regard.load(tmp_path, device="cpu").trace("a bank")
    assert torch.equal(trace.last_hidden_state, expected)
    assert trace.logits is None
    (note,) = (each for each in trace.status.notes if "language head" in each)
    assert all(name in note for name in (HEADS[kind], type(model).__name__, "without logits"))
    weights = tmp_path / "model.safetensors"
    tensors = safetensors.torch.load_file(weights)
    gone = next(key for key in sorted(tensors, reverse=True) if ".1." in key)
    del tensors[gone]
    safetensors.torch.save_file(tensors, weights, {"format": "pt"})
    refused(tmp_path, "is not whole: [0-9]+ tensors are missing")


def test_a_pair_without_its_head(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.BartConfig(
        vocab_size=50, d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=24, decoder_ffn_dim=24,
        encoder_attention_heads=4, decoder_attention_heads=4, max_position_embeddings=20, tie_word_embeddings=False,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
    )  # fmt: skip
    transformers.BartModel(config).eval().save_pretrained(tmp_path)
    content, head = json.loads((tmp_path / "config.json").read_text()), "BartForConditionalGeneration"
    (tmp_path / "config.json").write_text(json.dumps(content | {"architectures": [head]}))
    trace = regard.load(tmp_path, device="cpu").trace(ids=[3, 4, 5], target_ids=[2, 7])
    assert trace.decoder.logits is None
    assert any(f"language head of {head} (" in note for note in trace.decoder.status.notes)


def test_tensors_that_are_not_used_are_noted(tiny: Path) -> None:
    weights = tiny / "model.safetensors"
    tensors = safetensors.torch.load_file(weights)
    safetensors.torch.save_file(tensors | {"something.else": torch.zeros(2)}, weights, {"format": "pt"})
    status = regard.load(tiny, device="cpu").trace("a bank").status
    assert ["1, such as 'something.else'" in note for note in status.notes] == [True]


@pytest.mark.parametrize(("value", "name"), [(torch.nan, "NaN"), (torch.inf, "infinity")])
def test_weights_that_are_no_numbers(tiny: Path, value: float, name: str) -> None:
    weights = tiny / "model.safetensors"
    tensors = safetensors.torch.load_file(weights)
    tensors["encoder.layer.1.output.dense.bias"][3] = value
    safetensors.torch.save_file(tensors, weights, {"format": "pt"})
    refused(tiny, f"its weights hold {name}, in tensor 'encoder.layer.1.output.dense.bias'")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_large_matrices_in_half_precision_stay_so(tmp_path: Path, monkeypatch, dtype: torch.dtype) -> None:
    monkeypatch.setattr(read_checkpoint, "MIN_QUANTISED", 7 * 11)
    held = {
        "large": torch.randn(7, 11).to(dtype), "small": torch.randn(7, 10).to(dtype), "flat": torch.randn(77).to(dtype),
        "wide": torch.randn(7, 11), "count": torch.arange(77).view(7, 11),
    }  # fmt: skip
    files = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    safetensors.torch.save_file({name: held[name] for name in ("large", "small")}, files[0])
    safetensors.torch.save_file({name: held[name] for name in ("flat", "wide", "count")}, files[1])
    read = stored_tensors(files)
    assert read.keys() == held.keys()
    assert [name for name, each in read.items() if isinstance(each, StoredWeight)] == ["large"]
    large = read.pop("large")
    assert isinstance(large, StoredWeight)
    assert torch.equal(large.stored, held["large"])
    assert all(read[name].dtype == held[name].dtype and torch.equal(read[name], held[name]) for name in read)


def test_mxfp4_needs_blocks_and_scales_that_fit(tmp_path: Path) -> None:
    blocks, scales = torch.zeros(3, 5, 2, 16, dtype=torch.uint8), torch.full((3, 5, 2), 127, dtype=torch.uint8)
    file = tmp_path / "a.safetensors"
    safetensors.torch.save_file({"a_blocks": blocks, "a_scales": scales, "b_scales": torch.zeros(2)}, file)
    read = stored_tensors([file])
    assert sorted(read) == ["a", "b_scales"]
    assert (read["a"].shape, read["a"].untyped_storage().nbytes()) == ((3, 64, 5), blocks.nbytes)
    for wrong in ({"a_blocks": blocks}, {"a_blocks": blocks, "a_scales": scales[:2]}):
        safetensors.torch.save_file(wrong, file)
        with pytest.raises(RegardError, match=r"tensor 'a' in MXFP4 has blocks \(3, 5, 2, 16\) and scales"):
            stored_tensors([file])
