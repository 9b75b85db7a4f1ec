"""Small models of timm and torchvision: patches, windows and weights, compared with what their own modules compute."""

import math
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

import regard
from regard.errors import RegardError
from regard.vision.answer import looked
from regard.vision.modules import WatchedLayer, preprocess, stages_of, window_positions
from tests.support.zoo import package

PICTURE = np.random.default_rng(5).integers(0, 255, (24, 24, 3), dtype=np.uint8)
WIDTH, HEADS = 8, 2


def pixels(image: Any) -> Tensor:
    return torch.tensor(np.asarray(image)).permute(2, 0, 1) / 255


class Attention(nn.Module):
    """Attention of (B, L, M), by PyTorch's function or written out."""

    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.qkv, self.by_hand = nn.Linear(WIDTH, 3 * WIDTH), by_hand

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        if self.by_hand:
            out = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v
        else:
            out = F.scaled_dot_product_attention(q, k, v)
        return out.transpose(1, 2).flatten(2)


class Block(nn.Module):
    """A pre-norm layer."""

    def __init__(self, by_hand: bool = False) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(WIDTH), Attention(by_hand)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attn(self.norm1(x))


class Windowed(Block):
    """A layer of windows on a grid (B, rows, columns, M), which is shifted."""

    window_size, shift_size = (3, 2), (1, 1)

    def forward(self, x: Tensor) -> Tensor:
        size, (_, rows, columns, width) = self.window_size, x.shape
        shifted = self.norm1(x).roll([-n for n in self.shift_size], (1, 2))
        windows = shifted.view(rows // size[0], size[0], columns // size[1], size[1], width).transpose(1, 2)
        out = self.attn(windows.reshape(-1, size[0] * size[1], width)).view(windows.shape)
        return x + out.transpose(1, 2).reshape(x.shape).roll(self.shift_size, (1, 2))


class Vit(nn.Module):
    """Patches of 4 × 4 pixels after a class token, or without one on a grid."""

    patch_size = 4

    def __init__(self, *layers: nn.Module, grid: bool = False) -> None:
        super().__init__()
        self.patches, self.grid = nn.Conv2d(3, WIDTH, 4, 4), grid
        self.encoder = nn.Sequential(OrderedDict(layers=nn.Sequential(*layers), ln=nn.LayerNorm(WIDTH)))
        self.first = nn.Parameter(torch.ones(1, 1, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).permute(0, 2, 3, 1)
        return self.encoder(x if self.grid else torch.cat([self.first, x.flatten(1, 2)], 1))


def loaded(*layers: nn.Module, grid: bool = False, monkeypatch: Any = None) -> Any:
    torch.manual_seed(0)
    model = Vit(*layers, grid=grid)
    for kind, name in ((Vit, "vision_transformer"), (Windowed, "swin_transformer")):
        monkeypatch.setattr(kind, "__module__", f"torchvision.models.{name}")
    return regard.load(model, processor=pixels)


@pytest.mark.parametrize("by_hand", [True, False])
def test_weights_and_states_are_those_of_the_layers(by_hand: bool, monkeypatch: Any) -> None:
    model = loaded(*(Block(by_hand) for _ in range(3)), monkeypatch=monkeypatch)
    trace = model.trace(images=PICTURE)
    assert [token.text for token in trace.tokens][:3] == ["[CLS]", "0,0", "0,1"]
    assert (trace.patches.rows, trace.patches.columns, trace.patches.first) == (6, 6, 1)
    module = model.model.module
    x = torch.cat([module.first, module.patches(pixels(PICTURE)[None]).flatten(2).mT], 1).detach()
    for n, layer in enumerate(module.encoder.layers):
        torch.testing.assert_close(trace.hidden_states[n], x[0], atol=1e-6, rtol=0)
        q, k, _ = layer.attn.qkv(layer.norm1(x)).double().unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        exact = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)[0]
        torch.testing.assert_close(trace.attention[n][...].double(), exact, atol=2e-7, rtol=0)
        x = layer(x).detach()
    torch.testing.assert_close(trace.last_hidden_state, module.encoder.ln(x)[0].detach(), atol=1e-6, rtol=0)
    assert trace.status.difference is not None
    assert trace.status.difference < 2e-7
    only = model.trace(images=PICTURE, layers=[1])
    assert only.attention.kept == (1,)
    assert only.hidden_states.kept == (1, 2)
    assert len(model.trace(images=PICTURE, layers=()).hidden_states) == 4


def test_windows_are_where_their_tokens_are(monkeypatch: Any, tmp_path: Path) -> None:
    """The weights among all tokens, times all values, are what the layer adds."""
    model = loaded(Windowed(by_hand=True), Windowed(), grid=True, monkeypatch=monkeypatch)
    trace = model.trace(images=PICTURE)
    assert (trace.patches.rows, trace.patches.columns, trace.patches.first) == (6, 6, 0)
    for n, layer in enumerate(model.model.module.encoder.layers):
        state = trace.hidden_states[n]
        value = layer.attn.qkv(layer.norm1(state))[:, 2 * WIDTH :].unflatten(-1, (HEADS, -1)).transpose(0, 1)
        added = (trace.attention[n][...] @ value).transpose(0, 1).flatten(1).detach()
        torch.testing.assert_close(trace.hidden_states[n + 1] - state, added, atol=1e-6, rtol=0)
        assert int((trace.attention[n][0] > 0).sum(-1).unique()) == 6
    trace.save(tmp_path / "trace.safetensors", dtype="float16")
    saved = regard.open(tmp_path / "trace.safetensors").attention[0]
    torch.testing.assert_close(saved[...], trace.attention[0][...], atol=1e-3, rtol=0)
    assert regard.save_page(trace, tmp_path / "page.html") > 0
    monkeypatch.setattr(Windowed, "__module__", "elsewhere")
    with pytest.raises(RegardError, match=r"(?s)no layer attends among.*'encoder.layers.0.attn' attends among"):
        model.trace(images=PICTURE)


@given(st.data())
def test_each_token_has_one_place_in_one_window(data: Any) -> None:
    size, counts, shift = (data.draw(st.tuples(st.integers(1, 4), st.integers(1, 4))) for _ in range(3))
    grid = size[0] * counts[0], size[1] * counts[1]
    found = window_positions(grid, size, shift)
    assert sorted(found.flatten().tolist()) == list(range(grid[0] * grid[1]))
    for window, place in ((0, 0), (len(found) - 1, found.shape[1] - 1)):
        tops, inside = divmod(window, counts[1]), divmod(place, size[1])
        row, column = ((tops[n] * size[n] + inside[n] + shift[n]) % grid[n] for n in range(2))
        assert int(found[window, place]) == row * grid[1] + column


def test_a_stage_begins_with_other_states() -> None:
    a, b, c = torch.zeros(1, 4, 2), torch.ones(1, 4, 2), torch.ones(1, 2, 2)
    states = (a, b), (b.clone(), a), (b, b), (c, c)
    layers = [WatchedLayer(str(n), *both, []) for n, both in enumerate(states)]
    assert stages_of(layers) == [range(2), range(2, 3), range(3, 4)]


class Apart(Block):
    """A layer whose attention gives something else than states."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[:, :1]


def test_refusals(monkeypatch: Any) -> None:
    with pytest.raises(RegardError, match=r"no list of layers was found.*regard\.watch"):
        loaded(Apart(), monkeypatch=monkeypatch).trace(images=PICTURE)
    model = loaded(Block(), Block(), monkeypatch=monkeypatch)
    for asked, said in (
        ({"layers": [2]}, "layers: got 2"),
        ({"interventions": [regard.ablate(regard.head(0, 1))]}, r"regard\.watch\(model, interventions"),
    ):
        with pytest.raises(RegardError, match=said):
            model.trace(images=PICTURE, **asked)
    with pytest.raises(RegardError, match="cannot read 'pixel_values'"):
        model.trace(inputs={"pixel_values": torch.zeros(1, 4, 8, 8)})


pytestmark = [pytest.mark.zoo] + [pytest.mark.filterwarnings(f"ignore::{n}Warning") for n in ("User", "Future")]
VISION_PICTURE = Image.fromarray(np.random.default_rng(5).integers(0, 255, (97, 131, 3), dtype=np.uint8))
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
    first = model.trace(images=VISION_PICTURE, **options)
    assert [token.text for token in first.tokens][: len(names) + 2] == [*names, "0,0", "0,1"]
    patches, start = first.patches, first.hidden_states.kept[0] if options else 0
    assert patches.first == len(names)
    for token in (patches.first, patches.first + patches.columns + 2, len(first.tokens) - 1):
        left, top, right, bottom = (round(each) for each in patches.box(token))
        after = np.asarray(VISION_PICTURE).copy()
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
        features = module.forward_features(model.image_processor(VISION_PICTURE)["pixel_values"])
    if trace.last_hidden_state.shape == features[0].shape:
        assert torch.equal(trace.last_hidden_state, features[0])
    for part in module.modules():
        if hasattr(part, "fused_attn"):
            part.fused_attn = False  # its own softmax
    own = regard.load(module).trace(images=VISION_PICTURE)
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
        regard.load(model.model.module).trace(images=VISION_PICTURE)
    with pytest.raises(RegardError, match="don't say how"):
        preprocess(None, VISION_PICTURE)


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
    last = model.trace(images=VISION_PICTURE)
    assert last.attention.kept == (2, 3)
    assert regard.save_page(last, tmp_path / "page.html")
    last.save(tmp_path / "last.safetensors")
    assert torch.equal(regard.open(tmp_path / "last.safetensors").attention[3][...], last.attention[3][...])
    assert "patch" in looked([last], remove=(model, "blank")).findings()[0]
    with pytest.raises(RegardError, match="ends before the model's last layer"):
        looked([model.trace(images=VISION_PICTURE, layers=[1])], remove=(model, "blank"))
    with pytest.raises(RegardError, match=r"have different tokens: choose among 0–1, 2–3"):
        model.trace(images=VISION_PICTURE, layers=[0, 3])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("resnet18", "no attention was computed"),
        ("xcit_nano_12_p16_224", "no layer attends among the tokens that it receives"),
        ("maxvit_tiny_tf_224", "no layer attends among the tokens that it receives"),
        ("vit_small_patch16_18x2_224", "layers run side by side"),
    ],
)
def test_others_are_refused_by_name(name: str, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        timm(name, **({"depth": 2} if "18x2" in name else {})).trace(images=VISION_PICTURE)


def test_patches_that_are_not_known_are_not_claimed() -> None:
    three_axes = {"img_size": 64, "depth": 2, "embed_dim": 64, "num_heads": 2, "global_attn_indexes": (0, 1)}
    for model in (timm("vit_tiny_r_s16_p8_224"), timm("samvit_base_patch16", **three_axes)):
        trace = model.trace(images=VISION_PICTURE)
        assert trace.patches is None
        assert trace.tokens[1].text == "1"
