"""What is no text, pixels and sound, against the families' own eager attention. What is no token: the classes.

The logits and labels of classifiers are those of the model itself, alone, in batches and from a folder.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf

import regard
from regard.capture.build_trace import CONTRARY
from regard.capture.inputs import NUMBERED, class_names, probabilities
from regard.capture.interventions.names import ablate, head
from regard.models.model import Model
from tests.support.classifiers import HEADS, KINDS, LABELS, classifier, plain_logits

SMALL = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 37}
PIXELS = torch.randn(1, 3, 28, 35, generator=torch.Generator().manual_seed(0))
SOUND = torch.randn(1, 4000, generator=torch.Generator().manual_seed(1))
BANDS = torch.randn(1, 5, 46, generator=torch.Generator().manual_seed(2))  # 5 bands, 46 frames


def vit() -> Any:
    torch.manual_seed(0)
    return hf.ViTModel(hf.ViTConfig(**SMALL, image_size=(28, 35), patch_size=7)).eval()


def wav2vec2() -> Any:
    torch.manual_seed(0)
    convolution = {"conv_dim": (8, 8), "conv_stride": (20, 10), "conv_kernel": (20, 10), "num_feat_extract_layers": 2}
    position = {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}
    return hf.Wav2Vec2Model(hf.Wav2Vec2Config(**SMALL, **convolution, **position)).eval()


def whisper() -> Any:
    torch.manual_seed(0)
    sizes = {f"{part}_{size}": n for part in ("encoder", "decoder")
             for size, n in (("layers", 2), ("attention_heads", 3), ("ffn_dim", 37))}  # fmt: skip
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    config = hf.WhisperConfig(d_model=24, vocab_size=97, max_source_positions=23, num_mel_bins=5, **sizes, **ids)
    return hf.WhisperModel(config).eval()


@pytest.mark.parametrize(
    ("made", "inputs", "count"),
    [
        (vit, {"pixel_values": PIXELS}, 21),  # 4 × 5 patches and a class token
        (wav2vec2, {"input_values": SOUND}, 19),  # (4000 - 20) / 20 + 1 = 200, (200 - 10) / 10 + 1 = 20 frames
        (lambda: whisper().encoder, {"input_features": BANDS}, 23),
    ],
)
def test_is_what_the_family_itself_says(made: Any, inputs: dict, count: int) -> None:
    model = made()
    trace = Model(model, None, name="tiny").trace(inputs=inputs)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(**inputs, output_attentions=True, output_hidden_states=True)
    assert len(trace.attention) == len(expected.attentions) == 2
    for ours, theirs in zip(trace.attention, expected.attentions, strict=True):
        torch.testing.assert_close(ours.dense(), theirs[0], atol=1e-6, rtol=0)
    for n in range(2):
        torch.testing.assert_close(trace.hidden_states[n], expected.hidden_states[n][0], atol=2e-6, rtol=0)
    torch.testing.assert_close(trace.last_hidden_state, expected.last_hidden_state[0], atol=5e-6, rtol=0)
    count = expected.last_hidden_state.shape[1]
    assert [token.text for token in trace.tokens] == [str(n) for n in range(count)]
    assert trace.text == ""
    assert trace.token_embeddings is trace.position_embeddings is None
    assert trace.status.difference < 1e-6
    assert NUMBERED in trace.status.notes


def test_saved_and_opened(tmp_path: Any) -> None:
    trace = Model(vit(), None, name="vit").trace(inputs={"pixel_values": PIXELS})
    trace.save(tmp_path / "vit.safetensors")
    opened = regard.open(tmp_path / "vit.safetensors")
    assert opened.tokens == trace.tokens
    assert torch.equal(opened.attention[1].dense(), trace.attention[1].dense())


def test_sound_and_what_its_decoder_reads() -> None:
    model = whisper()
    pair = Model(model, None, name="whisper").trace(inputs={"input_features": BANDS}, target_ids=[1, 5, 60])
    model.set_attn_implementation("eager")
    with torch.no_grad():
        target = torch.tensor([[1, 5, 60]])
        expected = model(input_features=BANDS, decoder_input_ids=target, output_attentions=True)
    for ours, theirs in (
        (pair.encoder.attention, expected.encoder_attentions),
        (pair.decoder.attention, expected.decoder_attentions),
        (pair.decoder.cross, expected.cross_attentions),
    ):
        for mine, own in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine.dense(), own[0], atol=1e-6, rtol=0)
    assert pair.decoder.cross[0].shape == (3, 3, 23)
    torch.testing.assert_close(pair.decoder.last_hidden_state, expected.last_hidden_state[0], atol=5e-6, rtol=0)


def test_what_the_last_state_is() -> None:
    """DINOv3's base model is its encoder, whose last state lacks the final norm: the model's own word goes first."""
    torch.manual_seed(0)
    model = hf.DINOv3ViTModel(hf.DINOv3ViTConfig(**SMALL, image_size=28, patch_size=7)).eval()
    torch.nn.init.normal_(model.norm.weight)
    pixels = PIXELS[..., :28]
    trace = Model(model, None, name="dinov3").trace(inputs={"pixel_values": pixels})
    with torch.no_grad():
        torch.testing.assert_close(trace.last_hidden_state, model(pixels).last_hidden_state[0], atol=5e-6, rtol=0)


def test_refused_by_name() -> None:
    opened = Model(vit(), None, name="tiny-vit")
    for options, says in (
        ({"inputs": {"pixel_values": PIXELS.expand(2, -1, -1, -1)}}, "'pixel_values' has shape .*one item at a time"),
        ({"inputs": {"input_values": SOUND}}, "tiny-vit doesn't take 'input_values': its main input is 'pixel_values'"),
        ({"inputs": {"input_ids": torch.tensor([[1]])}}, "holds token ids"),
        ({"inputs": {"pixel_values": PIXELS, "text": None}}, "expected a mapping of names to tensors"),
        ({"inputs": {}}, "expected a mapping"),
        ({"inputs": {"pixel_values": PIXELS}, "ids": [1]}, "pass only one of a text, ids or inputs"),
        (
            {"inputs": {"pixel_values": PIXELS}, "interventions": [ablate(head(0, 1))]},
            "they cannot be used with inputs",
        ),
    ):
        with pytest.raises(regard.RegardError, match=says):
            opened.trace(**options)
    sizes = {"image_size": 28, "patch_size": 7, "embed_dim": 8, "depths": [2], "num_heads": [2], "window_size": 2}
    swin = hf.SwinModel(hf.SwinConfig(**sizes))
    with pytest.raises(regard.RegardError, match="attends within parts of them|do not keep one row of tokens"):
        Model(swin, None, name="swin").trace(inputs={"pixel_values": PIXELS[..., :28]})


def test_a_model_that_also_sees_pictures() -> None:
    """Its picture tower has 17 positions, which say nothing about texts; each part gets its own setting back."""
    torch.manual_seed(0)
    vision = hf.CLIPVisionConfig(**SMALL, image_size=28, patch_size=7)
    ids = {"vocab_size": 97, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    text = hf.LlamaConfig(**SMALL, **ids, num_key_value_heads=3)
    model = hf.LlavaModel(hf.LlavaConfig(vision_config=vision, text_config=text, image_token_index=96)).eval()
    model.vision_tower.set_attn_implementation("eager")
    opened = Model(model, None, name="llava")
    assert opened.limit is None
    trace = opened.trace(ids=[5, 17, 3] * 7)
    assert model.language_model.config._attn_implementation == "sdpa"
    assert model.vision_tower.config._attn_implementation == "eager"
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([[5, 17, 3] * 7])).last_hidden_state[0]
    torch.testing.assert_close(trace.last_hidden_state, expected, atol=5e-6, rtol=0)


def test_a_family_that_contradicts_itself_is_noted() -> None:
    """Phi 4's vision tower calls itself causal and asks for no mask: PyTorch's kernel is causal then, eager is not."""
    torch.manual_seed(0)
    model = hf.Phi4MultimodalVisionModel(hf.Phi4MultimodalVisionConfig(**SMALL, image_size=28, patch_size=7)).eval()
    pixels = PIXELS[..., :28]
    trace = Model(model, None, name="phi4").trace(inputs={"pixel_values": pixels})
    assert CONTRARY in trace.status.notes
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(pixels, output_attentions=True)
    torch.testing.assert_close(trace.attention[1].dense(), expected.attentions[1][0], atol=5e-6, rtol=0)
    assert CONTRARY not in Model(vit(), None, name="vit").trace(inputs={"pixel_values": PIXELS}).status.notes


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"input_features": BANDS[..., :40]}, r"'input_features' \(1, 5, 40\) torch.float32: .* 46, but"),
        (
            {"input_features": BANDS.repeat(1, 1, 2)},
            r"'input_features' \(1, 5, 92\) torch.float32: .* 46, but found 92",
        ),
        ({"input_features": BANDS[:, :4]}, r"'input_features' \(1, 4, 46\) torch.float32: .* 5 channels, but got 4"),
        ({"input_features": BANDS[0, None, 0]}, r"'input_features' \(1, 46\) torch.float32: "),
        ({"input_features": BANDS.double()}, r"'input_features' \(1, 5, 46\) torch.float64: "),
        (
            {"decoder_attention_mask": torch.ones(1, 2)},
            r"'decoder_attention_mask' \(1, 2\) torch.float32 without 'input_features'",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(inputs: dict, says: str) -> None:
    """Whisper takes just so many frames of sound, 3,000 where it is the real one."""
    model = Model(whisper(), None, name="tiny")
    with pytest.raises(regard.RegardError, match=says) as told:
        model.trace(inputs=inputs, target_ids=[1, 2])
    assert str(told.value).startswith("inputs: tiny (torch.float32) cannot read ")
    assert len(str(told.value).splitlines()) == 1
    assert len(model.trace(inputs={"input_features": BANDS}, target_ids=[1, 2]).encoder.tokens) == 23


TEXTS = ["we sat on the river bank and liked it", "a bank"]
NAMES = {"QuestionAnswering": ("start", "end"), "MultipleChoice": ("choice",)}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_the_models_own(kind: str, head: str) -> None:
    if (kind, head) == ("Llama", "MultipleChoice"):
        return  # transformers has none
    model = classifier(kind, head)
    assert model.labels == NAMES.get(head, LABELS)
    for text, together in zip(TEXTS, model.trace(TEXTS), strict=True):
        own, trace = plain_logits(model, text), model.trace(text)
        assert trace.labels == model.labels
        assert trace.logits.shape == own.shape
        assert torch.equal(trace.logits, own)
        torch.testing.assert_close(together.logits, own, atol=1e-5, rtol=0)


@pytest.mark.parametrize("head", HEADS[:2])
def test_logits_in_double_precision(head: str) -> None:
    model = classifier("Bert", head)
    exact = regard.load(model.model.double(), tokenizer=model.tokenizer)
    for text, together in zip(TEXTS, exact.trace(TEXTS), strict=True):
        torch.testing.assert_close(together.logits, plain_logits(exact, text), atol=1e-12, rtol=0)


def test_a_last_token_is_found_without_a_padding_token_and_with_another_ones() -> None:
    for padding in (None, 7):  # the tokenizer's is 0, which stands for a token of the text here
        model = classifier("Llama", "SequenceClassification", pad_token_id=padding)
        ids = [[5, 9, 0], [8, 3, 4, 0, 6], [1, 2, 4]]
        for row, trace in zip(ids, model.trace(ids=ids), strict=True):
            with torch.no_grad():
                own = model.model(torch.tensor([row])).logits[0]
            torch.testing.assert_close(trace.logits, own, atol=1e-5, rtol=0)
        assert model.model.config.pad_token_id == padding
        runs = dict(model.ablated(ids=ids[0], sets=[[regard.ablate(regard.head(0, n))] for n in range(3)]))
        cut = model.trace(ids=ids[0], interventions=[regard.ablate(regard.head(0, 2))])
        torch.testing.assert_close(runs[2].logits, cut.logits, atol=1e-5, rtol=0)


def test_a_classifier_is_opened_from_its_folder(tmp_path: Path) -> None:
    model = classifier("Bert", "SequenceClassification")
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    opened = regard.load(tmp_path, device="cpu")
    trace = opened.trace(TEXTS[0])
    torch.testing.assert_close(trace.logits, plain_logits(model, TEXTS[0]))
    assert any(note.startswith("Logits of the labels: ") for note in trace.status.notes)
    trace.save(tmp_path / "trace.safetensors")
    again = regard.open(tmp_path / "trace.safetensors")
    assert (again.labels, again.logits.tolist()) == (LABELS, trace.logits.tolist())
    windowed = opened.trace(TEXTS[0], window=6)
    assert windowed.logits is None
    assert windowed.windows[0].logits.shape == (3,)


def test_labels_are_in_the_order_of_their_numbers() -> None:
    model = classifier("Bert", "SequenceClassification", [str(n) for n in range(12)]).model
    model.config.id2label = {str(n): f"L{n}" for n in range(12)}
    assert class_names(model) == tuple(f"L{n}" for n in range(12))


def test_what_has_no_labels_has_no_logits_of_its_own(minilm, bank) -> None:
    assert class_names(minilm.model) == minilm.labels == bank[0].labels == ()


def test_probabilities_of_labels_that_exclude_each_other_and_of_others() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0])
    model = classifier("Bert", "SequenceClassification")
    assert torch.equal(probabilities(logits, LABELS, model.model), logits.softmax(-1))
    model.model.config.problem_type = "multi_label_classification"
    assert torch.equal(probabilities(logits, LABELS, model.model), logits.sigmoid())
    assert probabilities(logits[:1], ("score",), model.model) is None
    assert probabilities(logits[:2], ("start", "end"), model.model) is None
