"""A LoRA adapter's folder opens on the model that it adapts, and gives what peft gives beside the plain weights."""

import json
from pathlib import Path

import peft
import pytest
import safetensors.torch
import torch
import transformers

import regard
from regard.cli.main import main
from regard.explain.causes.contributions import contributions
from regard.models.load import load_tokenizer
from tests.capture.test_families import DECODERS, IDS, tiny
from tests.support import make_tiny

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing")  # which peft asks transformers for
ADAPTED = {"llama": ["q_proj", "v_proj", "o_proj", "up_proj"], "gpt2": ["c_attn", "c_proj"]}


def made(place: Path, kind: str, **options) -> tuple[Path, Path, torch.Tensor]:
    """Folders of a model and of an adapter for it, and the logits of both together."""
    base, adapter = place / "base", place / "adapter"
    model = tiny(kind, DECODERS[kind], language=True)
    model.save_pretrained(base)
    config = peft.LoraConfig(
        r=3,
        lora_alpha=7,
        target_modules=ADAPTED[kind],
        init_lora_weights=False,
        fan_in_fan_out=kind == "gpt2",
        **options,
    )
    torch.manual_seed(1)
    wrapped = peft.get_peft_model(model, config).eval()
    wrapped.save_pretrained(adapter)
    told = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(told | {"base_model_name_or_path": str(base)}))
    with torch.no_grad():
        return base, adapter, wrapped(input_ids=torch.tensor([IDS])).logits[0]


@pytest.mark.parametrize(("kind", "options"), [("llama", {}), ("gpt2", {}), ("llama", {"use_dora": True})])
def test_an_adapter_gives_what_it_gives_beside_the_weights(tmp_path: Path, kind: str, options: dict) -> None:
    base, adapter, logits = made(tmp_path, kind, **options)
    for opened in (regard.load(adapter, device="cpu"), regard.load(base, adapter=str(adapter), device="cpu")):
        trace = opened.trace(ids=IDS)
        torch.testing.assert_close(trace.logits, logits, atol=2e-6, rtol=0)
        assert opened.name.endswith("base + adapter")
        assert any("the LoRA adapter 'adapter' (rank 3) is added to the weights" in note for note in trace.status.notes)
        found = contributions(trace, len(IDS) - 1, 1)  # which checks its sum
        assert found.error < 1e-5
    plain = regard.load(base, device="cpu").trace(ids=IDS)
    assert float((plain.logits - logits).abs().max()) > 1e-3


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
    told["base_model_name_or_path"] = str(tmp_path / "base")
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(told))
    assert load_tokenizer(tmp_path / "adapter")("a bank").input_ids == minilm.tokenizer("a bank").input_ids
    for options, code, says in (
        (["--layer", "7"], 2, "layer 7 is out of range"),
        ([], 0, "the LoRA adapter 'adapter' (rank 3) is added to the weights of base"),
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


def test_adapters_that_cannot_be(tmp_path: Path) -> None:
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
    refused("given a model object and an adapter", tiny("llama", DECODERS["llama"], True), adapter=adapter)
    changed(base_model_name_or_path=None)
    refused("names no model that it adapts: regard.load.model, adapter=. takes one")
    changed(base_model_name_or_path=str(tmp_path / "gone"))
    refused("there is no such folder")
    changed(peft_type="PREFIX_TUNING")
    refused("its peft_type is 'PREFIX_TUNING', needs LORA")
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
    refused("there is no adapter_model.safetensors; weights are read from safetensors alone")
    (adapter / "adapter_config.json").write_text("{")
    refused("adapter_config.json")
