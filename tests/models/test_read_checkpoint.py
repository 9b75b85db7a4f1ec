"""A checkpoint fills its model, or is refused: what is missing, misshapen, unused, or no number."""

import json
import sys
from pathlib import Path

import huggingface_hub.constants
import peft
import pytest
import safetensors.torch
import torch
import transformers

import regard
from regard.cli.main import main
from regard.errors import RegardError
from regard.explain.causes.contributions import contributions
from regard.model_files.stored_weight import StoredWeight
from regard.models import read_checkpoint
from regard.models.load import load_tokenizer
from regard.models.read_checkpoint import stored_tensors
from tests.capture.test_families import DECODER, DECODERS, IDS, PAIRS, SMALL, TARGET
from tests.capture.test_families import tiny as tiny_model
from tests.models.test_load import refused, tiny
from tests.support import make_tiny

__all__ = ["tiny"]  # a fixture


def test_missing_and_misshapen_tensors(tiny: Path) -> None:
    weights = tiny / "model.safetensors"
    tensors = safetensors.torch.load_file(weights)
    gone = dict(tensors)
    del gone["encoder.layer.1.attention.self.key.weight"]
    safetensors.torch.save_file(gone, weights, {"format": "pt"})
    refused(tiny, "is incomplete: 1 tensors are missing.*layer.1.attention.self.key.weight")
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
    refused(tmp_path, "is incomplete: [0-9]+ tensors are missing")


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


# What peft asks transformers for, and what it says of models whose matrices are shared.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:.*{each}") for each in ("is_gradient_checkpointing", "tie_word", "save_emb")
]
ADAPTED = {"llama": ["q_proj", "v_proj", "o_proj", "up_proj"], "gpt2": ["c_attn", "c_proj"]}


def made(place: Path, kind: str, **options) -> tuple[Path, Path, torch.Tensor]:
    """Folders of a model and of an adapter for it, and the logits of both together."""
    base, adapter = place / "base", place / "adapter"
    model = tiny_model(kind, DECODERS[kind], language=True)
    model.save_pretrained(base)
    options = {"init_lora_weights": False, "fan_in_fan_out": kind == "gpt2"} | options
    config = peft.LoraConfig(r=3, lora_alpha=7, target_modules=ADAPTED[kind], **options)
    torch.manual_seed(1)
    wrapped = peft.get_peft_model(model, config).eval()
    for name, parameter in wrapped.named_parameters():
        if "lora_B" in name:  # as training does: most initializations change no logits
            parameter.data += 0.1 * torch.randn_like(parameter)
    wrapped.save_pretrained(adapter)
    told = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(told | {"base_model_name_or_path": str(base)}))
    with torch.no_grad():
        return base, adapter, wrapped(input_ids=torch.tensor([IDS])).logits[0]


@pytest.mark.parametrize(
    ("kind", "head", "sizes", "name"),
    [
        ("llama", "CausalLM", {"tie_word_embeddings": True}, "embed_tokens"),
        ("llama", "CausalLM", {"tie_word_embeddings": True}, "lm_head"),
        ("gpt2", "CausalLM", {}, "wte"),
        ("bert", "MaskedLM", {}, "predictions.decoder"),
        ("t5", "Seq2SeqLM", {}, "shared"),
        ("umt5", "Seq2SeqLM", {}, "lm_head"),
    ],
)
def test_an_adapter_of_a_matrix_that_is_shared(tmp_path: Path, kind: str, head: str, sizes: dict, name: str) -> None:
    """The embeddings are the head's matrix in all of these models: the other use of it stays as it was."""
    torch.manual_seed(0)
    sizes = SMALL | (DECODERS | PAIRS | {"bert": DECODER, "umt5": PAIRS["t5"]})[kind] | sizes
    auto = getattr(transformers, f"AutoModelFor{head}")
    model = auto.from_config(transformers.AutoConfig.for_model(kind, **sizes)).eval()
    model.save_pretrained(tmp_path / "base")
    config = peft.LoraConfig(r=3, target_modules=[name], init_lora_weights=False)
    beside = peft.get_peft_model(model, config).eval()
    beside.save_pretrained(tmp_path / "adapter")
    opened = regard.load(tmp_path / "base", adapter=tmp_path / "adapter", device="cpu")
    ids = {"ids": IDS} | ({"target_ids": TARGET} if opened.pairs else {})
    more = {"decoder_input_ids": torch.tensor([TARGET])} if opened.pairs else {}
    with torch.no_grad():
        logits = beside(input_ids=torch.tensor([IDS]), **more).logits[0]
    trace = opened.trace(**ids)
    torch.testing.assert_close((trace.decoder if opened.pairs else trace).logits, logits, atol=2e-5, rtol=0)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("llama", {}),
        ("gpt2", {}),
        ("llama", {"use_dora": True}),
        ("llama", {"init_lora_weights": "gaussian"}),
        ("llama", {"init_lora_weights": "olora"}),
        ("llama", {"init_lora_weights": "pissa", "use_rslora": True}),
    ],
)
def test_an_adapter_gives_what_it_gives_beside_the_weights(tmp_path: Path, kind: str, options: dict) -> None:
    base, adapter, logits = made(tmp_path, kind, **options)
    for opened in (regard.load(adapter, device="cpu"), regard.load(base, adapter=str(adapter), device="cpu")):
        trace = opened.trace(ids=IDS)
        torch.testing.assert_close(trace.logits, logits, atol=2e-6, rtol=0)
        assert opened.name.endswith("base + adapter")
        assert any("LoRA adapter 'adapter' (rank 3)" in note for note in trace.status.notes)
        found = contributions(trace, len(IDS) - 1, 1)  # which checks its sum
        assert found.error < 1e-5
    plain = regard.load(base, device="cpu").trace(ids=IDS)
    assert float((plain.logits - logits).abs().max()) > 1e-3


def test_an_adapter_of_a_model_in_the_cache_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read from there by its path, so that the hub is not asked; its name stays."""
    base, adapter, logits = made(tmp_path, "llama")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", ".")
    cached = tmp_path / "models--someone--tiny"
    for each in ("snapshots", "refs"):
        (cached / each).mkdir(parents=True)
    base.rename(cached / "snapshots" / "a0")
    (cached / "refs" / "main").write_text("a0")
    config = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": "someone/tiny"}))
    opened = regard.load(adapter, device="cpu")
    assert opened.name == "someone/tiny + adapter"
    torch.testing.assert_close(opened.trace(ids=IDS).logits, logits, atol=2e-6, rtol=0)
    (cached / "snapshots" / "a0" / "adapter_config.json").write_text("{}")
    refused(adapter, "also has an adapter")


def test_an_adapter_on_weights_in_half_precision_is_added_in_float32(tmp_path: Path) -> None:
    base, adapter, _ = made(tmp_path, "llama")
    half = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    half.save_pretrained(base)
    opened = regard.load(adapter, device="cpu").trace(ids=IDS)
    wide = peft.PeftModel.from_pretrained(half.float(), str(adapter))
    with torch.no_grad():
        logits = wide(input_ids=torch.tensor([IDS])).logits[0]
    torch.testing.assert_close(opened.logits, logits, atol=2e-6, rtol=0)


def test_an_adapter_is_a_model_to_the_command(minilm, tmp_path: Path, capsys) -> None:
    """Before anything is loaded its layers are those of the model that it adapts, and its tokenizer is that model's."""
    make_tiny(tmp_path / "base", minilm)
    model = transformers.AutoModel.from_pretrained(tmp_path / "base")
    peft.get_peft_model(model, peft.LoraConfig(r=3, target_modules=["query"])).save_pretrained(tmp_path / "adapter")
    told = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    for base in ("all-MiniLM-L6-v2", str(tmp_path / "base")):
        told["base_model_name_or_path"] = base
        (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(told))
        assert load_tokenizer(tmp_path / "adapter")("a bank")["input_ids"] == minilm.tokenizer("a bank").input_ids
    for options, code, says in (
        (["--layer", "7"], 2, "layer 7 is out of range"),
        ([], 0, "The LoRA adapter 'adapter' (rank 3) was added to the weights of base"),
    ):
        with pytest.raises(SystemExit) as left:
            main(["see", "A bank.", "--word", "bank", "--model", str(tmp_path / "adapter"), *options])
        assert left.value.code == code
        assert says in " ".join("".join(capsys.readouterr()).split())


def test_of_an_adapter_that_stays_beside_an_output_projection_no_split_is_told(tmp_path: Path) -> None:
    """What the adapter adds would be missing from the parts; beside queries alone it changes nothing of the split."""
    base, _, _ = made(tmp_path, "llama")
    for names, split in ((["q_proj"], True), (["o_proj"], False)):
        model = transformers.AutoModelForCausalLM.from_pretrained(base)
        beside = peft.get_peft_model(model, peft.LoraConfig(r=3, target_modules=names, init_lora_weights=False))
        trace = regard.load(beside.base_model.model.eval()).trace(ids=IDS)
        with torch.no_grad():
            torch.testing.assert_close(trace.logits, beside(input_ids=torch.tensor([IDS])).logits[0], atol=2e-6, rtol=0)
        if split:
            assert contributions(trace, 3, 1).error < 1e-5
        else:
            with pytest.raises(regard.RegardError, match="'linear' reads the context beside the output projection"):
                contributions(trace, 3, 1)


def test_adapters_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, adapter, _ = made(tmp_path, "llama")
    config = json.loads((adapter / "adapter_config.json").read_text())
    weights = safetensors.torch.load_file(adapter / "adapter_model.safetensors")
    first = sorted(weights)[0]

    def refused(says: str, source=adapter, **options) -> None:
        with pytest.raises(regard.RegardError, match=says) as caught:
            regard.load(source, device="cpu", **options)
        assert "\n" not in str(caught.value)

    def changed(**entries) -> None:
        (adapter / "adapter_config.json").write_text(json.dumps(config | entries))

    def kept(tensors: dict) -> None:
        safetensors.torch.save_file(tensors, adapter / "adapter_model.safetensors")

    refused("there is no adapter_config.json", base, adapter=tmp_path)
    refused("an adapter would change the model object", tiny_model("llama", DECODERS["llama"], True), adapter=adapter)
    # The folder may be a stranger's: it neither fetches a model, nor finds one where the command happens to run.
    monkeypatch.chdir(tmp_path)
    for name in (None, "evil/evil", "base", "./base", str(tmp_path / "gone"), "/" + "a" * 5000, str(adapter)):
        changed(base_model_name_or_path=name)
        refused("adapts .*, which is neither a full model path nor in the hub's cache: write")
    changed(peft_type="PREFIX_TUNING")
    refused("its peft_type is PREFIX_TUNING, .* expected LORA")
    for start in ("pissa_niter_4", "pissa2_niter_4"):  # other weights each time
        changed(init_lora_weights=start)
        refused(f"init_lora_weights {start}, expected LORA without pissa_niter")
    (tmp_path / "megatron").mkdir()
    (tmp_path / "megatron" / "core.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    # peft imports the first setting's module; the last could change the weights
    for name, value in (("megatron_config", {"a": 1}), ("alora_invocation_tokens", [1]), ("of_tomorrow", 2)):
        changed(**{name: value, "megatron_core": "megatron.core"})
        refused(f"'{name}' in its adapter_config.json isn't supported")
    assert "megatron.core" not in sys.modules
    for start in (True, "gaussian"):
        changed(r=1 << 40, init_lora_weights=start)  # of which no memory is taken
        refused("does not fit base: .*loading state_dict for PeftModel: size mismatch")
    changed(r=2)
    refused("does not fit base: .*loading state_dict for PeftModel: size mismatch")
    changed()
    kept({name: each for name, each in weights.items() if name != first})
    refused("does not fit base: 1 of its tensors")
    kept(weights | {first.replace("layers.0", "layers.9"): weights[first].clone()})
    refused("does not fit base: 1 of its tensors")
    kept(weights | {first: weights[first] * torch.nan})
    refused("does not fit base")
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    refused("there is no adapter_model.safetensors: pass the folder of an adapter, in safetensors")
    (adapter / "adapter_config.json").write_text("{")
    refused("adapter_config.json")
