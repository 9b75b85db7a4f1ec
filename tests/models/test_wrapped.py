"""Objects that hold a model: `regard.load` traces what is inside, with their own tokenizer."""

import copy
from typing import Any

import peft
import pytest
import torch
import transformers

import regard
from regard.model_files.folder import default_folder
from tests.capture.test_families import DECODERS, tiny

TEXT = "a river bank"
pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing")  # what peft asks transformers for


def same(source: Any, minilm: Any, **options: Any) -> None:
    loaded = regard.load(source, **options)
    assert loaded.model is minilm.model
    for layer, other in zip(loaded.trace(TEXT).attention, minilm.trace(TEXT).attention, strict=True):
        assert torch.equal(layer.dense(), other.dense())


def test_a_pipeline(minilm: Any) -> None:
    pipeline = transformers.pipeline("feature-extraction", model=minilm.model, tokenizer=minilm.tokenizer)
    same(pipeline, minilm)
    own = copy.copy(minilm.tokenizer)
    assert regard.load(pipeline, tokenizer=own).tokenizer is own
    processor = transformers.ViTImageProcessorPil()
    model = transformers.ViTModel(transformers.ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2))
    pictures = transformers.pipeline("image-feature-extraction", model=model, image_processor=processor)
    assert regard.load(pictures).image_processor is processor


def test_data_parallel_and_compiled_models(minilm: Any) -> None:
    """A pipeline may hold a wrapped model too, and each may be wrapped twice."""
    for wrapped in (torch.nn.DataParallel(minilm.model), torch.compile(minilm.model, backend="eager")):
        same(wrapped, minilm, tokenizer=minilm.tokenizer)
    same(torch.compile(torch.nn.DataParallel(minilm.model), backend="eager"), minilm, tokenizer=minilm.tokenizer)
    with pytest.raises(regard.RegardError, match="got a Linear, expected a model object of transformers"):
        regard.load(torch.compile(torch.nn.Linear(2, 3), backend="eager"))
    with pytest.raises(regard.RegardError, match="a model object computes in its own dtype: leave out dtype bfloat16"):
        regard.load(torch.compile(minilm.model, backend="eager"), dtype="bfloat16")


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_an_adapted_model(kind: str) -> None:
    """The trace is that of the model with its adapter, which is left as it was."""
    targets = {"llama": ["q_proj", "o_proj"], "gpt2": ["c_attn", "c_proj"]}[kind]
    config = peft.LoraConfig(r=2, target_modules=targets, init_lora_weights=False, fan_in_fan_out=kind == "gpt2")
    adapted = peft.get_peft_model(tiny(kind, DECODERS[kind], language=True), config).eval()
    before = {name: weight.clone() for name, weight in adapted.state_dict().items()}
    ids = [1, 4, 2, 5]
    trace = regard.load(adapted).trace(ids=ids)
    with torch.no_grad():
        torch.testing.assert_close(trace.logits, adapted(input_ids=torch.tensor([ids])).logits[0], atol=1e-5, rtol=0)
    after = adapted.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_an_adapter_that_is_no_part_of_the_weights() -> None:
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    prompted = peft.get_peft_model(tiny("llama", DECODERS["llama"], language=True), config)
    with pytest.raises(regard.RegardError, match=r"PROMPT_TUNING isn't part.* pass model.get_base_model\(\), without"):
        regard.load(prompted)
    assert regard.load(prompted.get_base_model()).trace(ids=[1, 2]).attention


@pytest.mark.filterwarnings("ignore")
def test_sentence_transformers(minilm: Any) -> None:
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    loaded = regard.load(library.SentenceTransformer(str(default_folder()), device="cpu"))
    for layer, other in zip(loaded.trace(TEXT).attention, minilm.trace(TEXT).attention, strict=True):
        assert torch.equal(layer.dense(), other.dense())


class CrossEncoder:
    """As it was up to version 3: no module."""

    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)


def test_older_versions_of_sentence_transformers(minilm: Any) -> None:
    same(CrossEncoder(model=minilm.model, tokenizer=minilm.tokenizer), minilm)
    with pytest.raises(regard.RegardError, match="got a CrossEncoder without a transformers model"):
        regard.load(CrossEncoder())
