"""Small models of timm and torchvision: patches, windows and weights, compared with what their own modules compute."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

import regard
from regard.errors import RegardError
from regard.models.vision import preprocess
from regard.questions.look.answer import looked
from tests.support.zoo import package

pytestmark = [pytest.mark.zoo] + [pytest.mark.filterwarnings(f"ignore::{n}Warning") for n in ("User", "Future")]
PICTURE = Image.fromarray(np.random.default_rng(5).integers(0, 255, (97, 131, 3), dtype=np.uint8))
SMALL = {"img_size": 64, "depth": 2}
VITS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "vit_tiny_patch16_224": (SMALL, ["[CLS]"]),
    "deit_tiny_distilled_patch16_224": (SMALL, ["[CLS]", "[DIST]"]),
    "vit_small_patch14_reg4_dinov2": (SMALL | {"img_size": 56}, ["[CLS]", "[REG1]", "[REG2]", "[REG3]", "[REG4]"]),
    "vit_base_patch16_reg4_gap_256": (SMALL, ["[REG1]", "[REG2]", "[REG3]", "[REG4]"]),
    "eva02_tiny_patch14_224": (SMALL | {"img_size": 56}, ["[CLS]"]),
    "beit_base_patch16_224": (SMALL, ["[CLS]"]),
    "vit_base_patch16_siglip_224": (SMALL, []),
    "cait_xxs24_224": (SMALL, []),
}
FEW = {"embed_dim": 24, "depths": [2, 2], "num_heads": [3, 6]}
SWINS = {
    "timm 1": lambda: timm("swin_tiny_patch4_window7_224", img_size=64, window_size=8, **FEW),
    "timm 1, shifted": lambda: timm(
        "swin_tiny_patch4_window7_224", img_size=64, window_size=8, **FEW, always_partition=True
    ),
    "timm 2": lambda: timm("swinv2_tiny_window8_256", img_size=64, window_size=8, **FEW),
    "torchvision 1": lambda: torchvision("SwinTransformer", **SQUARES),
    "torchvision 2": lambda: torchvision("SwinTransformer", **SQUARES, version="V2"),
}
SQUARES = FEW | {"patch_size": [4, 4], "window_size": [8, 8]}  # one window in the second stage


def timm(name: str, **options: Any) -> Any:
    torch.manual_seed(1)
    return regard.load(package("timm").create_model(name, **options))


def torchvision(name: str, version: str = "", **options: Any) -> Any:
    models, presets = package("torchvision.models"), package("torchvision.transforms._presets")
    torch.manual_seed(1)
    if version:
        parts = models.swin_transformer
        options |= {"block": parts.SwinTransformerBlockV2, "downsample_layer": parts.PatchMergingV2}
    transform = presets.ImageClassification(crop_size=64, resize_size=64)
    return regard.load(getattr(models, name)(**options), processor=transform)


def check_patches(model: Any, names: list[str], **options: Any) -> Any:
    """Paint a patch over: its token changes, and no other by as much. Returns the trace."""
    first = model.trace(images=PICTURE, **options)
    assert [token.text for token in first.tokens][: len(names) + 2] == [*names, "0,0", "0,1"]
    patches, start = first.patches, first.hidden_states.kept[0] if options else 0
    assert patches.first == len(names)
    for token in (patches.first, patches.first + patches.columns + 2, len(first.tokens) - 1):
        left, top, right, bottom = (round(each) for each in patches.box(token))
        after = np.asarray(PICTURE).copy()
        after[top:bottom, left:right] = 255 - after[top:bottom, left:right]
        second = model.trace(images=after, **options)
        changes = (second.hidden_states[start] - first.hidden_states[start]).norm(dim=-1)
        assert int(changes.argmax()) == token
    return first


@pytest.mark.parametrize("name", VITS)
def test_vits_of_timm(name: str) -> None:
    options, names = VITS[name]
    model = timm(name, **options)
    trace, module = check_patches(model, names), model.model.module.eval()
    assert len(trace.attention) == 2
    assert (trace.patches.rows, trace.patches.columns) == (4, 4)
    with torch.no_grad():
        features = module.forward_features(model.image_processor(PICTURE)["pixel_values"])
    if trace.last_hidden_state.shape == features[0].shape:
        assert torch.equal(trace.last_hidden_state, features[0])
    for part in module.modules():
        if hasattr(part, "fused_attn"):
            part.fused_attn = False  # its own softmax
    own = regard.load(module).trace(images=PICTURE)
    for fused, by_hand in zip(trace.attention, own.attention, strict=True):
        assert by_hand.given is not None
        torch.testing.assert_close(fused[...], by_hand[...], atol=2e-7, rtol=0)


def test_features_only() -> None:
    check_patches(timm("vit_tiny_patch16_224", img_size=64, depth=3, features_only=True), ["[CLS]"])


def test_vit_of_torchvision() -> None:
    options = dict(zip(("image_size", "patch_size", "num_layers", "num_heads"), (64, 16, 2, 4), strict=True))
    model = torchvision("VisionTransformer", **options, hidden_dim=32, mlp_dim=64)
    trace = check_patches(model, ["[CLS]"])
    layer = model.model.module.eval().encoder.layers[1]
    x = layer.ln_1(trace.hidden_states[1])
    _, own = layer.self_attention(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(trace.attention[1][...], own.detach(), atol=2e-7, rtol=0)
    with pytest.raises(RegardError, match=r"pass load\(model, processor=weights\.transforms\(\)\)"):
        regard.load(model.model.module).trace(images=PICTURE)
    with pytest.raises(RegardError, match="don't say how"):
        preprocess(None, PICTURE)


@pytest.mark.parametrize("kind", SWINS)
def test_windows_of_swin(kind: str, tmp_path: Path) -> None:
    """Weights among all patches, times the values of all, are the layer's attention, whatever its windows are."""
    model = SWINS[kind]()
    module = model.model.module.eval()
    for layers in ([0, 1], [2, 3]):
        trace = check_patches(model, [], layers=layers)
        for n in layers:
            block = module.get_submodule(
                f"layers.{n // 2}.blocks.{n % 2}" if "timm" in kind else f"features.{n + 1 - n % 2}.{n % 2}"
            )
            attention, state = block.attn, trace.hidden_states[n]
            normed = state if "2" in kind else block.norm1(state)
            bias = attention.v_bias if kind == "timm 2" else attention.qkv.bias[-normed.shape[1] :]
            value = F.linear(normed, attention.qkv.weight[-normed.shape[1] :], bias)
            weights = trace.attention[n][...]
            context = (weights @ value.unflatten(1, (len(weights), -1)).transpose(0, 1)).transpose(0, 1).flatten(1)
            grid = normed.view(1, trace.patches.rows, trace.patches.columns, -1)
            expected = (block._attn if "timm" in kind else attention)(grid)[0].flatten(0, 1)
            torch.testing.assert_close(attention.proj(context), expected, atol=1e-5, rtol=1e-4)
    last = model.trace(images=PICTURE)
    assert last.attention.kept == (2, 3)
    assert regard.save_page(last, tmp_path / "page.html")
    last.save(tmp_path / "last.safetensors")
    assert torch.equal(regard.open(tmp_path / "last.safetensors").attention[3][...], last.attention[3][...])
    assert "patch" in looked([last], remove=(model, "blank")).findings()[0]
    with pytest.raises(RegardError, match="ends before the model's last layer"):
        looked([model.trace(images=PICTURE, layers=[1])], remove=(model, "blank"))
    with pytest.raises(RegardError, match=r"have different tokens: choose among 0–1, 2–3"):
        model.trace(images=PICTURE, layers=[0, 3])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("resnet18", "no attention was computed"),
        ("xcit_nano_12_p16_224", "no layer attends among tokens of its own"),
        ("maxvit_tiny_tf_224", "no layer attends among tokens of its own"),
        ("vit_small_patch16_18x2_224", "layers run side by side"),
    ],
)
def test_others_are_refused_by_name(name: str, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        timm(name, **({"depth": 2} if "18x2" in name else {})).trace(images=PICTURE)


def test_patches_that_are_not_known_are_not_claimed() -> None:
    three_axes = {"img_size": 64, "depth": 2, "embed_dim": 64, "num_heads": 2, "global_attn_indexes": (0, 1)}
    for model in (timm("vit_tiny_r_s16_p8_224"), timm("samvit_base_patch16", **three_axes)):
        trace = model.trace(images=PICTURE)
        assert trace.patches is None
        assert trace.tokens[1].text == "1"
