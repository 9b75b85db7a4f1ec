"""Texts with a picture in them, through a small model of LLaVA's kind: each patch is the token it is said to be."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers

import regard
from regard.errors import RegardError
from regard.vision.answer import looked
from tests.vision.test_pictures import noise

WORDS = ["<unk>", "<s>", "</s>", "<image>", "what", "is", "on", "the", "mat", "?", "a", "cat"]
VISION = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 37, "image_size": 56, "patch_size": 14}
SMALL = {"hidden_size": 24, "intermediate_size": 31, "num_attention_heads": 3, "num_key_value_heads": 1}
TEXT = "a cat <image> is on the mat ?"


def save_looker(folder: Path, vision_layers: int = 4) -> Any:
    """Write the folder of a model: a tower of CLIP's kind, of which the last layer but one is read, and a decoder."""
    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
                                           extra_special_tokens={"image_token": "<image>"})  # fmt: skip
    torch.manual_seed(0)
    config = hf.LlavaConfig(
        vision_config=hf.CLIPVisionConfig(**VISION, num_hidden_layers=vision_layers),
        text_config=hf.LlamaConfig(vocab_size=len(WORDS), num_hidden_layers=3, initializer_range=0.3, **SMALL),
        image_token_index=3, vision_feature_layer=-2, vision_feature_select_strategy="default",
    )  # fmt: skip
    model = hf.LlavaForConditionalGeneration(config).eval()
    sizes = {"size": {"shortest_edge": 56}, "crop_size": {"height": 56, "width": 56}}
    processor = hf.LlavaProcessor(
        hf.CLIPImageProcessorPil(**sizes), tokenizer, patch_size=14, vision_feature_select_strategy="default",
        image_token="<image>", num_additional_image_tokens=1,
    )  # fmt: skip
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    Image.fromarray(noise(131, 97)).save(folder / "cat.png")
    return processor


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    made: Path = tmp_path_factory.mktemp("looker")
    save_looker(made)
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return regard.load(folder)


def test_tokens_are_the_texts_and_the_pictures(model: Any, folder: Path) -> None:
    trace = model.trace(TEXT, images=folder / "cat.png")
    assert trace.text == TEXT
    assert trace.patches.first == 2
    assert (trace.patches.rows, trace.patches.columns) == (4, 4)
    names = [token.text for token in trace.tokens]
    assert names == ["a", "cat", *(f"{row},{column}" for row in range(4) for column in range(4)), *TEXT.split()[3:]]
    for token in (*trace.tokens[:2], *trace.tokens[18:]):
        assert TEXT[token.start : token.end] == token.text
    assert trace.word("mat")[0].tokens == (21,)
    assert [round(each) for each in trace.patches.box(2)] == [16, 0, 40, 24]
    assert (trace.token_embeddings, len(trace.attention)) == (None, 3)


@pytest.mark.parametrize("vision_layers", [2, 7])
def test_weights_are_those_of_eager_attention(tmp_path: Path, vision_layers: int) -> None:
    """Whether the tower of the picture has more layers than the decoder or fewer: it is the decoder that is traced."""
    processor = save_looker(tmp_path, vision_layers)
    trace = regard.load(tmp_path).trace(TEXT, images=tmp_path / "cat.png", statistics=True)
    eager = hf.LlavaForConditionalGeneration.from_pretrained(tmp_path, attn_implementation="eager").eval()
    read = processor(text=TEXT, images=Image.open(tmp_path / "cat.png"), return_tensors="pt")
    with torch.no_grad():
        found = eager(**read, output_attentions=True, output_hidden_states=True)
    for layer, weights in enumerate(found.attentions):
        torch.testing.assert_close(trace.attention[layer].dense(), weights[0], atol=5e-6, rtol=0)
        torch.testing.assert_close(trace.attention[layer].received(), weights[0].sum(1), atol=1e-5, rtol=0)
        torch.testing.assert_close(trace.hidden_states[layer], found.hidden_states[layer][0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(trace.logits, found.logits[0], atol=1e-4, rtol=1e-4)
    assert "outside the stack 'model.language_model.layers'" in trace.status.notes[-1]
    (last,) = looked([trace]).looks
    assert (last.query, last.who, last.layer) == (22, "“?”", 2)
    row = found.attentions[2][0].double().mean(0)[22]
    torch.testing.assert_close(last.heat.flatten(), row[2:18], atol=5e-6, rtol=0)
    assert last.special == pytest.approx(float(row[:2].sum() + row[18:].sum()), abs=1e-5)
    (word,) = looked([trace], 1, 2, "cat").looks
    assert (word.query, float(word.heat.sum())) == (1, 0.0)
    likely, token = found.logits[0, -1].softmax(-1).max(-1)
    assert last.answer == (WORDS[int(token)], pytest.approx(float(likely), abs=1e-5))
    following, peak = looked([trace], 1, 2, "cat").findings()
    assert all(part in following for part in (f"“{WORDS[int(token)]}”", f"{likely:.2f}"))
    assert all(part in peak for part in ("“cat”", "no patch", "layer 1, head 2"))


def test_a_patch_that_is_painted_over_is_the_token_that_changes_most(model: Any) -> None:
    before, after = noise(131, 97), noise(131, 97)
    first = model.trace(TEXT, images=before)
    left, top, right, bottom = (round(each) for each in first.patches.box(9))
    after[top:bottom, left:right] = 255 - after[top:bottom, left:right]
    second = model.trace(TEXT, images=after)
    assert int((second.hidden_states[0] - first.hidden_states[0]).norm(dim=-1).argmax()) == 9


def test_several_pictures_and_texts(model: Any) -> None:
    one, two = model.trace("what is on the mat ?", images=[noise(131, 97), noise(56, 80)])
    assert one.text == two.text == "<image>\nwhat is on the mat ?"
    assert any("has no <image>" in note for note in one.status.notes)
    alone = model.trace(["is a cat on the mat ?", TEXT], images=[noise(131, 97)] * 2)
    assert torch.equal(alone[1].logits, model.trace(TEXT, images=noise(131, 97)).logits)
    assert not torch.equal(one.logits, two.logits)
    assert model.pictures == "in a text"
    assert regard.load(model.model, tokenizer=model.tokenizer).pictures is None


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_is_refused(model: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = noise(64, 64)
    for given, says in [
        ({"images": picture}, "reads images in a text: pass one as well"),
        ({"text": "<image> <image> ?", "images": picture}, "text: got 2 × <image>, expected one"),
        ({"text": ["a cat", "a mat"], "images": [picture]}, "images: got 1, expected one for each of the 2 texts"),
        ({"text": "a cat", "images": []}, "images: got none"),
        ({"text": " ", "images": picture}, "text"),
        ({"text": 7, "images": picture}, "text"),
        ({"text": "a cat", "images": picture, "interventions": [regard.ablate(regard.head(0, 0))]},
         "cannot be used with inputs or images"),
    ]:  # fmt: skip
        with pytest.raises(RegardError, match=says):
            model.trace(**given)
    with pytest.raises(RegardError, match=r"the trace has an image \(cat.png\)"):
        regard.why(model, model.trace(TEXT, images=folder / "cat.png"), "mat")
    with pytest.raises(RegardError, match="has no tokenizer for the text"):
        regard.load(model.model, processor=model.image_processor).trace(TEXT, images=picture)
    with pytest.raises(RegardError, match="has no processor_config.json"):
        regard.load(model.model, tokenizer=model.tokenizer).trace(TEXT, images=picture)
    vast = {"size": {"shortest_edge": 10**6}, "crop_size": {"height": 10**6, "width": 10**6}}
    processor, kept = model.image_processor, model.image_processor.image_processor
    processor.image_processor = hf.CLIPImageProcessorPil(**vast)
    with pytest.raises(RegardError, match="makes 1,000,000,000,000 pixels of it"):
        model.trace(TEXT, images=picture)
    processor.image_processor = kept
    with monkeypatch.context() as changed:
        changed.setattr(model.model.config, "image_token_index", 5)
        with pytest.raises(RegardError, match=r"cannot read 'pixel_values' \(1, 3, 56, 56\) torch.float32: "):
            model.trace(TEXT, images=picture)
    model.model.config.vision_config.patch_size = 7
    try:
        with pytest.raises(RegardError, match=r"has 16 tokens for a picture of 8 × 8 patches: needs one for each"):
            model.trace(TEXT, images=picture)
    finally:
        model.model.config.vision_config.patch_size = 14
