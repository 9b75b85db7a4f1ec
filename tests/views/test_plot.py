"""Any attention is drawn as the weights that it has, with its labels; labels that don't fit are refused."""

from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from torch import nn

import regard
from regard.attention.attention_map import AttentionMap
from regard.attention.recording import scope
from regard.errors import RegardError

WEIGHTS = torch.tensor([[[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]], [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]])  # (H, L, S)
QUERIES, KEYS = ["sat", "down"], ["the", "cat", " sat"]
OTHER, MAP = torch.zeros_like(WEIGHTS), AttentionMap.of_weights(WEIGHTS)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def same(axes: Any, expected: Any, title: str, queries: list[str], keys: list[str]) -> None:
    np.testing.assert_allclose(np.asarray(axes.get_images()[0].get_array()), expected, atol=1e-6)
    labels = [[label.get_text() for label in each] for each in (axes.get_yticklabels(), axes.get_xticklabels())]
    assert (axes.get_title(), *labels) == (title, queries, keys)


@pytest.mark.parametrize(
    ("given", "chosen", "title"),
    [
        (MAP, {"head": 1}, "attention weights, head 1"),
        (WEIGHTS[1], {}, "attention weights, head 0"),
        (torch.stack([OTHER, WEIGHTS]), {"head": -1, "batch": 1}, "attention weights, batch item 1 of 2, head 1"),
        (WEIGHTS.numpy(), {"head": 1}, "attention weights, head 1"),
        ((OTHER[None], WEIGHTS[None], OTHER[None]), {"head": 1, "layer": 1}, "layer 1, head 1"),
        ([AttentionMap.of_weights(OTHER), MAP], {"head": 1, "layer": 1}, "layer 1, head 1"),
    ],
)
def test_every_kind_of_weights_is_the_same_array(given: Any, chosen: Any, title: str) -> None:
    same(regard.plot(given, QUERIES, KEYS, **chosen), WEIGHTS[1], title, QUERIES, ["the", "cat", "␣sat"])


def test_without_labels_positions_are_shown() -> None:
    _, axes = plt.subplots()
    assert MAP.plot(axes=axes) is axes
    same(axes, WEIGHTS.mean(0), "attention weights, mean of 2 heads", ["0", "1"], ["0", "1", "2"])
    same(regard.plot(WEIGHTS[0, :, :2], [10, 2.5]), WEIGHTS[0, :, :2], "attention weights, head 0",
         ["10", "2.5"], ["10", "2.5"])  # fmt: skip


@pytest.mark.parametrize("how", [{}, {"causal": True}, {"scale": 0.3}, {"mask": torch.tensor([True, True, False])}])
def test_queries_and_keys_are_drawn_as_their_softmax(how: dict[str, Any]) -> None:
    query, key = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    scores = query.double() @ key.double().mT * how.get("scale", 0.5)
    hidden = ~how["mask"] if "mask" in how else torch.ones(3, 3).triu(1).bool() & ("causal" in how)
    expected, labels = scores.masked_fill(hidden, -torch.inf).softmax(-1)[1], (["0", "1", "2"],) * 2
    with regard.record() as calls, scope("blocks.3.attn"):
        regard.attend(query, key, key, **how)
    same(AttentionMap.of_query_key(query, key, **how).plot(head=1), expected, "attention weights, head 1", *labels)
    for axes in (
        calls.plot("blocks.3.attn", 1),
        calls.plot(("blocks.3.attn", 0), 1),
        regard.plot(calls, layer=3, head=1),
    ):
        same(axes, expected, "blocks.3.attn, head 1", *labels)
    with pytest.raises(RegardError, match=r"2 labels for 3 queries of blocks.3.attn, weights \(2, 3, 3\)"):
        calls.plot("blocks.3.attn", tokens=QUERIES)


def test_watched_calls_are_drawn_and_listed() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 2, enable_nested_tensor=False)
    with regard.watch(model) as seen:
        model(torch.randn(1, 3, 8))
    path = "layers.1.self_attn"
    same(seen.plot(path, 1, tokens=KEYS), seen[path].weights[0, 1], f"{path}, head 1", *(["the", "cat", "␣sat"],) * 2)
    cells = [path, "scaled_dot_product_attention", "(1, 2, 3, 3)", "test_plot.py:", *seen.notes]
    assert [cell for cell in cells if cell not in seen._repr_html_()] == []


def test_a_traces_map_has_its_own_tokens_and_takes_others(minilm: Any) -> None:
    trace = minilm.trace("a cat")
    own, weights = [token.text for token in trace.tokens], trace.attention[2]
    same(regard.plot(trace.attention, layer=2, head=3), weights[3], "layer 2, head 3", own, own)
    same(weights.plot(3, tokens=["w", "x", "y", "z"], key_tokens=trace.tokens), weights[3],
         "attention weights, head 3", ["w", "x", "y", "z"], own)  # fmt: skip


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("given", "how", "says"),
    [
        (WEIGHTS, {"tokens": KEYS}, r"tokens: 3 labels for 2 queries of the map, weights \(2, 2, 3\)"),
        (WEIGHTS, {"key_tokens": QUERIES}, "key_tokens: 2 labels for 3 keys of the map"),
        (WEIGHTS, {"tokens": "sat down"}, "tokens: got str, expected one label per position"),
        (WEIGHTS, {"batch": 1}, "batch item 1 is out of range: the map has only batch item 0"),
        (WEIGHTS, {"layer": 0}, "layer 0 isn't in"),
        ((WEIGHTS,) * 5, {}, r"plot: got 5 maps \(layer 0, layer 1, layer 2, layer 3, …\): choose with layer="),
        ((WEIGHTS, None), {}, "layer 1: it is None: load a transformers model with attn_implementation='eager'"),
        ([(WEIGHTS,), WEIGHTS], {}, r"layer 0: it is a tuple: generate\(\) returns one per step"),
        ((WEIGHTS, -WEIGHTS), {}, r"layer 1 of 2: its weights are below 0; make a map .*of_query_key\(q, k"),
        ((), {"layer": 0}, "got no attention: load a transformers model with attn_implementation='eager'"),
        (torch.ones(3), {}, r"got shape \(3,\), expected 2 to 4 axes"),
        ("text", {}, "got str, expected an AttentionMap, recorded calls, a tensor"),
    ],
)
def test_what_is_refused(given: Any, how: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        regard.plot(given, **how)
    assert plt.get_fignums() == []


def test_attention_to_patches_is_drawn_over_the_image() -> None:
    weights, picture = torch.rand(1, 2, 17, 17).softmax(-1), np.zeros((30, 40, 3), np.uint8)
    for how, query, what in (
        ({"image": picture}, 0, "mean of 2 heads, query 0 ([CLS])\n4 × 4 after 1 class token"),
        ({"image": picture, "grid": (2, 8), "query": 10, "head": 1}, 10, "head 1, query 10 (1,1)\n2 × 8 after 1 class"),
        ({"grid": (3, 4), "query": -1}, 16, "mean of 2 heads, query 16 (2,3)\n3 × 4 after 5 other tokens"),
    ):
        axes = regard.plot(weights, **how)
        assert axes.get_title().startswith(f"attention weights, {what}")
        *_, heat = axes.get_images()
        rows, columns = how.get("grid", (4, 4))
        row = weights[0, how["head"], query] if "head" in how else weights[0, :, query].mean(0)
        np.testing.assert_allclose(heat.get_array(), row[17 - rows * columns :].reshape(rows, columns), atol=1e-6)
        assert heat.get_extent() == [0, *((40, 30) if "image" in how else (columns, rows)), 0]
    axes = regard.plot(weights[..., :16], grid=(4, 4))
    assert axes.get_title() == "attention weights, mean of 2 heads, mean of 17 queries\n4 × 4"
    np.testing.assert_allclose(
        axes.get_images()[0].get_array(), weights[0, ..., :16].mean((0, 1)).reshape(4, 4), atol=1e-6
    )


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (
            {"grid": (5, 5)},
            r"grid: 17 keys of the map, weights \(2, 17, 17\), are no 5 × 5 patches with up to 16 before",
        ),
        ({"grid": (-4, -4)}, "are no -4 × -4 patches"),
        ({"grid": (4.0, 4)}, r"grid: got \(4.0, 4\), expected \(rows, columns\)"),
        ({"image": np.zeros((3, 4), np.uint8)}, r"image: got \(3, 4\) uint8"),
        ({"query": 3}, "query chooses the map over an image: pass grid= or image= as well"),
        ({"grid": (4, 4), "query": 17}, "query position 17 is out of range"),
        ({"grid": (4, 4), "head": 2}, "head 2 is out of range: the map has heads 0 to 1"),
    ],
)
@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_does_not_fit_an_image_is_refused(how: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        regard.plot(torch.rand(1, 2, 17, 17), **how)
    with pytest.raises(RegardError, match=r"19 keys of layer 1, weights \(1, 2, 19\), are no 4 × 4 patches"):
        regard.plot([torch.rand(2, 17), torch.rand(2, 19)], layer=1, image=np.zeros((3, 4, 3), np.uint8))
