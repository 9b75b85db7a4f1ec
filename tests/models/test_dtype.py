"""Models are loaded with their weights as they are stored, or in a dtype that was asked for."""

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch

import regard
from benchmarks.tiny import make
from regard.explain.causes.outcomes import Outcome
from regard.model_files.stored_weight import StoredWeight
from regard.models import read_checkpoint
from regard.models.model import Model
from tests.capture.test_families import DECODER, DECODERS, EXPERTS, IDS, PAIRS, TARGET, tiny
from tests.support import make_tiny

KINDS = {
    **{kind: (sizes, False) for kind, sizes in PAIRS.items()},
    **{kind: (sizes, True) for kind, sizes in DECODERS.items()},
    "bert": (DECODER, False),
    "mixtral": (DECODER | {"num_key_value_heads": 2} | EXPERTS, True),
    "qwen3_moe": (DECODER | {"num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2,
                             "moe_intermediate_size": 16}, True),
    "gemma3_text": (DECODER | {"num_key_value_heads": 2, "head_dim": 8}, True),
}  # fmt: skip


@pytest.fixture(autouse=True)
def every_matrix_is_kept(monkeypatch) -> None:
    monkeypatch.setattr(read_checkpoint, "MIN_QUANTISED", 1)


def traced(model: Model, **options):
    return model.trace(ids=IDS, target_ids=TARGET, **options) if model.pairs else model.trace(ids=IDS, **options)


def kept(model: Model) -> int:
    return sum(isinstance(each, StoredWeight) for each in model.model.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_weights_as_they_are_stored_give_what_they_give_in_float32(kind: str, tmp_path: Path) -> None:
    sizes, language = KINDS[kind]
    tiny(kind, sizes, language).to(torch.bfloat16).save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    stored, wide = (regard.load(tmp_path, device="cpu", dtype=dtype) for dtype in ("auto", torch.float32))
    matrices = sum(each.ndim > 1 for each in wide.model.parameters())
    assert kept(stored) == matrices > 0 == kept(wide)
    ours, theirs = traced(stored), traced(wide)
    for mine, other in zip(ours.sides, theirs.sides, strict=True):
        assert mine.status.dtype == "float32"
        assert mine.status.difference <= 5e-6
        assert any("in half precision" in note for note in mine.status.notes)
        for one, two in zip(mine.hidden_states, other.hidden_states, strict=True):
            torch.testing.assert_close(one, two, atol=1e-5 * max(1.0, float(two.abs().max())), rtol=0)
        for one, two in zip(mine.attention, other.attention, strict=True):
            torch.testing.assert_close(one.dense(), two.dense(), atol=1e-5, rtol=0)
        if other.logits is not None:
            torch.testing.assert_close(mine.logits, other.logits, atol=1e-5, rtol=0)


def test_explanations_of_stored_weights_are_those_of_float32(tmp_path: Path) -> None:
    """Contributions, attribution by gradients, interventions and generation read the weights too."""
    tiny("llama", DECODERS["llama"], language=True).to(torch.bfloat16).save_pretrained(tmp_path)
    found = []
    for dtype in ("auto", "float32"):
        model = regard.load(tmp_path, device="cpu", dtype=dtype)
        trace = model.trace(ids=IDS)
        changed = model.trace(ids=IDS, interventions=[regard.ablate(regard.head(1, 2))])
        written = model.generate(ids=IDS, max_new_tokens=3)
        parts = trace.attention_outputs[0].weight.double()
        scores = regard.attribute_to_tokens(
            model, trace, Outcome("a logit", lambda run: run.sides[-1].logits[-1, 7]), steps=3
        )
        rows = scores.scores
        split = regard.attribution(model, trace, len(IDS) - 1, 7)
        direct = torch.tensor([each["adds"] for each in split.rows()])
        found.append((changed.last_hidden_state, written.trace.last_hidden_state, parts, rows, direct))
        assert written.trace.status.difference <= 5e-6
    for ours, theirs in zip(*found, strict=True):
        assert ours.numel() > 0
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_generation_settings_are_read_beside_stored_weights(tmp_path: Path) -> None:
    model = tiny("llama", DECODERS["llama"], language=True).to(torch.float16)
    model.generation_config.max_length = 13
    model.save_pretrained(tmp_path)
    opened = regard.load(tmp_path, device="cpu")
    assert kept(opened) > 0
    assert opened.model.generation_config.max_length == 13
    (tmp_path / "generation_config.json").unlink()
    assert regard.load(tmp_path, device="cpu").model.generation_config.eos_token_id == 2


def test_a_family_that_writes_into_its_weights_is_read_in_float32(tmp_path: Path) -> None:
    model, _ = make("youtu")
    model.to(torch.bfloat16).save_pretrained(tmp_path)
    opened = regard.load(tmp_path, device="cpu")
    assert kept(opened) == 0
    assert "read in float32" in opened.notes[-1]
    assert "written into (zero_)" in opened.notes[-1]


def test_a_model_whose_weights_are_kept_is_saved_in_float32(tmp_path: Path) -> None:
    tiny("llama", DECODERS["llama"], language=True).to(torch.bfloat16).save_pretrained(tmp_path / "half")
    stored, wide = (regard.load(tmp_path / "half", device="cpu", dtype=dtype) for dtype in ("auto", "float32"))
    stored.model.save_pretrained(tmp_path / "wide")
    torch.save(stored.model.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(ValueError, match="contiguous"):
        safetensors.torch.save_file(stored.model.state_dict(), tmp_path / "weights.safetensors")
    again = regard.load(tmp_path / "wide", device="cpu")
    kept_apart = torch.load(tmp_path / "weights.pt", weights_only=True)
    assert kept(again) == 0
    for name, each in wide.model.named_parameters():
        assert torch.equal(again.model.get_parameter(name), each)
        assert torch.equal(kept_apart[name], each)


def test_files_in_float32_are_read_as_before(minilm, tmp_path: Path) -> None:
    make_tiny(tmp_path, minilm)
    opened = regard.load(tmp_path, device="cpu")
    assert kept(opened) == 0
    assert not opened.notes


def test_dtypes_that_cannot_be(tmp_path: Path, minilm) -> None:
    make_tiny(tmp_path, minilm)
    for source, dtype, says in (
        (tmp_path, "float64", "dtype: got 'float64', expected one of auto, float32, bfloat16, float16"),
        (tmp_path, torch.int8, "dtype: got 'int8', expected one of auto"),
        (tiny("bert", DECODER), "bfloat16", "a model object computes in its own dtype: leave out dtype bfloat16"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            regard.load(source, dtype=dtype)


def write_in_mxfp4(folder: Path) -> None:
    """A tiny gpt-oss as its makers write it: its experts in MXFP4, all else in bfloat16."""
    sizes = DECODER | {"num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 3, "num_experts_per_tok": 2}
    model = tiny("gpt_oss", sizes | {"hidden_size": 64, "intermediate_size": 96}, language=True)
    drawn, written = torch.Generator().manual_seed(7), {}
    for name, each in model.state_dict().items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            written[name] = each.bfloat16()
            continue
        shape = len(each), each.shape[2], each.shape[1] // 32  # a row of blocks is a column
        written[f"{name}_blocks"] = torch.randint(0, 256, (*shape, 16), generator=drawn).byte()
        written[f"{name}_scales"] = torch.randint(119, 124, shape, generator=drawn).byte()
    safetensors.torch.save_file(written, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads(model.config.to_json_string()) | {"quantization_config": {"quant_method": "mxfp4"}}
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["GptOssForCausalLM"]}))


def test_experts_in_mxfp4_give_what_they_give_raised(tmp_path: Path) -> None:
    """Which transformers does as it reads them, where they are asked for in float32."""
    write_in_mxfp4(tmp_path)
    stored, wide = (regard.load(tmp_path, device="cpu", dtype=dtype) for dtype in ("auto", torch.float32))
    theirs = dict(wide.model.named_parameters())
    assert kept(wide) == 0 < kept(stored)
    for name, weight in stored.model.named_parameters():
        assert isinstance(weight, StoredWeight) == (weight.ndim > 1), name
        assert torch.equal(weight + 0, theirs[name]), name
    ours, others = traced(stored), traced(wide)
    assert any("half precision or MXFP4" in note for note in ours.status.notes)
    torch.testing.assert_close(ours.logits, others.logits, atol=1e-5, rtol=0)
    for one, two in zip(ours.attention, others.attention, strict=True):
        torch.testing.assert_close(one.dense(), two.dense(), atol=1e-5, rtol=0)
