"""Pictures through small models of every kind: each token is the patch that it is said to be."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from PIL import Image

import regard
from regard.errors import RegardError

SMALL = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 37, "image_size": 56,
    "patch_size": 14,
}  # fmt: skip
KINDS = {
    "vit": (hf.ViTConfig, hf.ViTModel, {}, 1),
    "deit": (hf.DeiTConfig, hf.DeiTModel, {}, 2),
    "dinov2": (hf.Dinov2Config, hf.Dinov2Model, {}, 1),
    "registers": (hf.Dinov2WithRegistersConfig, hf.Dinov2WithRegistersModel, {"num_register_tokens": 4}, 5),
    "clip": (hf.CLIPVisionConfig, hf.CLIPVisionModel, {}, 1),
    "siglip": (hf.SiglipVisionConfig, hf.SiglipVisionModel, {}, 0),
    "beit": (hf.BeitConfig, hf.BeitModel, {}, 1),
}
PROCESSOR = hf.BitImageProcessorPil(size={"shortest_edge": 64}, crop_size={"height": 56, "width": 56})


def built(kind: str) -> Any:
    config, model, more, _ = KINDS[kind]
    torch.manual_seed(3)
    return model(config(**SMALL, **more)).eval()


def noise(width: int, height: int) -> Any:
    return np.random.default_rng(5).integers(0, 255, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_patch_that_is_painted_over_is_the_token_that_changes(kind: str) -> None:
    """Of what enters layer 0, the token of the painted patch changes, and where a border is touched its neighbours'."""
    model = regard.load(built(kind), processor=PROCESSOR)
    before = noise(131, 97)
    first = model.trace(images=before)
    patches = first.patches
    assert patches is not None
    assert patches.first == KINDS[kind][3]
    assert (patches.rows, patches.columns) == (4, 4)
    assert [token.special for token in first.tokens] == [True] * patches.first + [False] * 16
    for token in (patches.first, patches.first + 6, patches.first + 15):
        left, top, right, bottom = (round(each) for each in patches.box(token))
        after = before.copy()
        after[top:bottom, left:right] = 255 - after[top:bottom, left:right]
        second = model.trace(images=after)
        changes = (second.hidden_states[0] - first.hidden_states[0]).norm(dim=-1)
        assert int(changes.argmax()) == token


def test_what_a_trace_says_of_its_picture(tmp_path: Path) -> None:
    model = regard.load(built("vit"), processor=PROCESSOR)
    Image.fromarray(noise(131, 97)).save(tmp_path / "cat.png")
    one, two = model.trace(images=[tmp_path / "cat.png", noise(64, 64)])
    alone = model.trace(images=tmp_path / "cat.png")
    assert torch.equal(one.last_hidden_state, alone.last_hidden_state)
    assert [re.findall(r"\d+", note) for note in one.status.notes] == [["57", "23", "108", "131", "6", "91", "97"]]
    assert one.status.difference is not None
    assert one.status.difference < 1e-5
    assert two.patches is not None
    assert two.patches.picture.size == (64, 64)
    pixels = PROCESSOR(images=Image.fromarray(noise(131, 97)), return_tensors="pt")["pixel_values"]
    eager = hf.ViTModel.from_pretrained(None, config=model.model.config, state_dict=model.model.state_dict(),
                                        attn_implementation="eager").eval()  # fmt: skip
    with torch.no_grad():
        weights = eager(pixels, output_attentions=True).attentions[1][0]
    heat = one.patches.heat(one.attention[1][:, 0])
    assert torch.allclose(heat, weights[:, 0, 1:].unflatten(-1, (4, 4)), atol=1e-6)
    one.save(tmp_path / "cat.regard")
    again = regard.open(tmp_path / "cat.regard")
    assert again.patches is None
    assert any("doesn't include cat.png" in note for note in again.status.notes)


def test_a_folders_own_processor_is_used(tmp_path: Path) -> None:
    built("dinov2").save_pretrained(tmp_path)
    bare = regard.load(tmp_path)
    with pytest.raises(RegardError, match=r"has no preprocessor_config.json, .* pass load\(processor=\)"):
        bare.trace(images=noise(64, 64))
    PROCESSOR.save_pretrained(tmp_path)
    opened = regard.load(tmp_path)
    given = regard.load(tmp_path, processor=PROCESSOR)
    assert torch.equal(*(each.trace(images=noise(80, 64)).last_hidden_state for each in (opened, given)))


def test_merged_tokens_have_numbers() -> None:
    """A model that keeps other tokens than its patches: they have numbers, and that is noted."""
    model = regard.load(built("vit"), processor=PROCESSOR)
    model.model.config.patch_size = 28
    trace = model.trace(images=noise(64, 64))
    assert trace.patches is None
    assert [token.text for token in trace.tokens] == [str(n) for n in range(17)]
    assert "named by their number" in trace.status.notes[-1]


def test_what_is_refused() -> None:
    model = regard.load(built("vit"), processor=PROCESSOR)
    for given, says in [
        ({"images": []}, "images: got none"),
        ({"images": noise(9, 9), "text": "a cat"}, "images: ViTModel reads images only"),
        ({"images": 7}, "image: got int, expected a file"),
        ({"images": noise(9, 9), "window": 5}, "not with ids, inputs, a target or a window"),
    ]:
        with pytest.raises(RegardError, match=says):
            model.trace(**given)
    with pytest.raises(RegardError, match=r"reads 'input_ids', expected a model that reads images"):
        regard.load().trace(images=noise(9, 9))


@pytest.mark.usefixtures("no_checks_of_annotations")  # the backbone's states have other axes
def test_a_decoder_with_queries_of_its_own_is_refused() -> None:
    backbone = hf.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1], out_features=["stage4"]
    )
    sizes = {f"{part}_{n}": 2 for part in ("encoder", "decoder") for n in ("layers", "attention_heads", "ffn_dim")}
    model = hf.DetrModel(hf.DetrConfig(backbone_config=backbone, d_model=8, num_queries=5, **sizes)).eval()
    with pytest.raises(RegardError, match=r"'encoder.layers' have 4 tokens and its result 5: it cannot be traced"):
        regard.load(model).trace(inputs={"pixel_values": torch.randn(1, 3, 64, 64)})
