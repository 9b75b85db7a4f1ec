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


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def drawn(axes: Any) -> Any:
    return np.asarray(axes.get_images()[0].get_array())


def names(axes: Any) -> tuple[list[str], list[str]]:
    return tuple([label.get_text() for label in each] for each in (axes.get_yticklabels(), axes.get_xticklabels()))  # type: ignore[return-value]


def test_a_map_is_drawn_with_its_labels() -> None:
    axes = AttentionMap.of_weights(WEIGHTS).plot(head=1, tokens=QUERIES, key_tokens=KEYS)
    np.testing.assert_allclose(drawn(axes), WEIGHTS[1])
    assert names(axes) == (["sat", "down"], ["the", "cat", "␣sat"])
    assert (axes.get_title(), axes.get_ylabel(), axes.get_xlabel()) == ("attention weights, head 1", "query", "key")
    mean = regard.plot(WEIGHTS)
    np.testing.assert_allclose(drawn(mean), WEIGHTS.mean(0))
    assert names(mean) == (["0", "1"], ["0", "1", "2"])  # positions
    assert mean.get_title() == "attention weights, mean of 2 heads"
    square = regard.plot(WEIGHTS[:, :, :2], [10, 20.5])
    assert names(square) == (["10", "20.5"], ["10", "20.5"])
    _, mine = plt.subplots()
    assert regard.plot(WEIGHTS, axes=mine) is mine


@pytest.mark.parametrize("kind", ["map", "(L, S)", "(B, H, L, S)", "array", "layers", "list of maps"])
def test_every_kind_of_weights_is_the_same_array(kind: str) -> None:
    other = torch.zeros_like(WEIGHTS)
    given, chosen = {
        "map": (AttentionMap.of_weights(WEIGHTS), {"head": 1}),
        "(L, S)": (WEIGHTS[1], {}),
        "(B, H, L, S)": (torch.stack([other, WEIGHTS]), {"head": -1, "batch": 1}),
        "array": (WEIGHTS.numpy(), {"head": 1}),
        "layers": ((other[None], WEIGHTS[None], other[None]), {"head": 1, "layer": 1}),
        "list of maps": ([AttentionMap.of_weights(each) for each in (other, WEIGHTS)], {"head": 1, "layer": 1}),
    }[kind]
    axes = regard.plot(given, QUERIES, KEYS, **chosen)  # type: ignore[arg-type]
    np.testing.assert_allclose(drawn(axes), WEIGHTS[1])
    assert names(axes)[0] == QUERIES
    assert ("batch item 1 of 2" in axes.get_title()) == (kind == "(B, H, L, S)")
    assert ("layer 1" in axes.get_title()) == (chosen.get("layer") == 1)


@pytest.mark.parametrize("how", [{}, {"causal": True}, {"scale": 0.5}, {"mask": torch.tensor([True, True, False])}])
def test_queries_and_keys_are_drawn_as_their_softmax(how: dict[str, Any]) -> None:
    query, key = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    scores = query.double() @ key.double().mT * how.get("scale", 0.5)
    hidden = ~how["mask"] if "mask" in how else torch.ones(3, 3).triu(1).bool() & ("causal" in how)
    expected = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    with regard.record() as calls, scope("blocks.3.attn"):
        regard.attend(query, key, key, **how)
    axes = [
        AttentionMap.of_query_key(query, key, **how).plot(head=1),
        calls.plot("blocks.3.attn", head=1),
        calls.plot(("blocks.3.attn", 0), head=1),
        regard.plot(calls, layer=3, head=1),
    ]
    for each in axes:
        np.testing.assert_allclose(drawn(each), expected[1], atol=1e-6)
    assert [each.get_title() for each in axes[1:]] == ["blocks.3.attn, head 1"] * 3
    with pytest.raises(RegardError, match=r"2 labels for 3 queries of blocks.3.attn, weights \(2, 3, 3\)"):
        calls.plot("blocks.3.attn", tokens=QUERIES)


def test_watched_calls_are_drawn_and_listed() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 2, enable_nested_tensor=False)
    with regard.watch(model) as seen:
        model(torch.randn(1, 3, 8))
    axes = seen.plot("layers.1.self_attn", head=1, tokens=["the", "cat", "sat"])
    np.testing.assert_allclose(drawn(axes), seen["layers.1.self_attn"].weights[0, 1], atol=1e-6)
    assert names(axes) == (["the", "cat", "sat"],) * 2
    table = seen._repr_html_()
    assert table.count("layers.") == 2
    assert "scaled_dot_product_attention" in table
    assert "(1, 2, 3, 3)" in table
    assert "test_any_attention.py:" in table
    assert all(note in table for note in seen.notes)


def test_a_traces_map_has_its_own_tokens_and_takes_others(minilm: Any) -> None:
    trace = minilm.trace("a cat")
    own = [token.text for token in trace.tokens]
    assert names(regard.plot(trace.attention[2])) == (own, own)
    assert names(trace.attention[2].plot(tokens=list("wxyz"), key_tokens=trace.tokens)) == (list("wxyz"), own)


@pytest.mark.parametrize(
    ("given", "how", "says"),
    [
        (WEIGHTS, {"tokens": KEYS}, r"tokens: 3 labels for 2 queries of the map, weights \(2, 2, 3\)"),
        (WEIGHTS, {"key_tokens": QUERIES}, "key_tokens: 2 labels for 3 keys of the map"),
        ((WEIGHTS,), {"tokens": ["a"]}, "tokens: 1 labels for 2 queries of layer 0"),
        (WEIGHTS, {"tokens": "sat down"}, "tokens: given str, needs one label per position"),
        (WEIGHTS, {"batch": 1}, "batch item 1 is out of range: the map has only batch item 0"),
        (WEIGHTS, {"head": 2}, "head 2 is out of range"),
        (WEIGHTS, {"layer": 0}, "layer 0: there is none"),
        ((WEIGHTS,) * 5, {}, r"plot: given 5 maps \(layer 0, layer 1, layer 2, layer 3, …\): choose with layer="),
        ((WEIGHTS, None), {}, "layer 1: it is None: load the transformers model with attn_implementation='eager'"),
        ([(WEIGHTS,), WEIGHTS], {}, r"layer 0: it is a tuple: generate\(\) returns one for each step"),
        ((WEIGHTS, -WEIGHTS), {}, r"layer 1 of 2: its weights are below 0; make a map .*of_query_key\(q, k"),
        ([], {}, "given no attention"),
        (torch.ones(3), {}, r"given shape \(3,\), needs 2 to 4 axes"),
        ("text", {}, "given str, needs an AttentionMap, recorded calls, a tensor"),
    ],
)
def test_what_is_refused(given: Any, how: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        regard.plot(given, **how)
    assert plt.get_fignums() == []
