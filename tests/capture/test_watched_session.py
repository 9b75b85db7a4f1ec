"""A module that was written for no package's sake: its layers, their states, and windows where they are."""

import math
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import regard
from regard.capture.watched_session import WatchedLayer, stages_of, window_positions
from regard.errors import RegardError

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
    trace.save(tmp_path / "trace.safetensors", dtype="float16", heads=[1])
    saved = regard.open(tmp_path / "trace.safetensors").attention[0]
    torch.testing.assert_close(saved[0], trace.attention[0][1], atol=1e-3, rtol=0)
    assert regard.save_page(trace, tmp_path / "page.html") > 0
    monkeypatch.setattr(Windowed, "__module__", "elsewhere")
    with pytest.raises(RegardError, match=r"(?s)no layer attends among tokens.*'encoder.layers.0.attn' attends among"):
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
        ({"layers": [2]}, "layers: given 2"),
        ({"interventions": [regard.ablate(regard.head(0, 1))]}, r"regard\.watch\(model, interventions"),
    ):
        with pytest.raises(RegardError, match=said):
            model.trace(images=PICTURE, **asked)
    with pytest.raises(RegardError, match="cannot read 'pixel_values'"):
        model.trace(inputs={"pixel_values": torch.zeros(1, 4, 8, 8)})
