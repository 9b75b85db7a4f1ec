"""A page of attention without a trace has its weights and labels, or is refused before anything is computed."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.attention.attention_map import AttentionMap
from regard.attention.recording import scope
from regard.errors import RegardError
from regard.web import attention_page, show
from tests.support.web_pages import Read, build_nothing


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_nothing(tmp_path / "built", monkeypatch)


def saved(tmp_path: Path, given: Any, **how: Any) -> Read:
    size = regard.save_page(given, tmp_path / "a.html", **how)
    assert size == (tmp_path / "a.html").stat().st_size
    return Read(tmp_path / "a.html")


def test_given_weights_and_labels_are_on_the_page(tmp_path: Path) -> None:
    weights = torch.rand(2, 3, 2, 4).softmax(-1)  # layers, heads, queries, keys
    page = saved(tmp_path, tuple(weights[:, None]), tokens=["sat", "down"], key_tokens=list("abcd"), title="Ours")
    assert page.data["title"] == "Ours"
    assert [text["tokens"]["text"] for text in page.data["texts"]] == [["sat", "down"], list("abcd")]
    calls = page.data["calls"]
    assert [(call["name"], call["queries"], call["keys"]) for call in calls] == [("layer 0", 0, 1), ("layer 1", 0, 1)]
    for number, expected in enumerate(weights):
        torch.testing.assert_close(torch.as_tensor(page.weights(calls[number])).float(), expected, atol=1e-6, rtol=0)
    assert page.data["status"][0].startswith("The weights on this page are within ")


def test_recorded_calls_are_on_the_page_by_their_paths(tmp_path: Path) -> None:
    query, key = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8)
    with regard.record() as calls:
        for path in ("blocks.0.attn", "blocks.1.attn", "blocks.1.attn"):
            with scope(path):
                regard.attend(query, key, key, causal=True)
    page = saved(tmp_path, calls, batch=1, layers=[1], heads=[0, 3], numbers="float32")
    assert [call["name"] for call in page.data["calls"]] == ["blocks.1.attn, 0", "blocks.1.attn, 1"]
    assert [call["nth"] for call in page.data["calls"]] == [0, 1]
    assert page.data["calls"][0]["head_numbers"] == [0, 3]
    assert [text["tokens"]["text"] for text in page.data["texts"]] == [list("01234")]
    assert page.data["title"] == "attention weights of 2 calls, batch item 1 of 2"
    expected = calls["blocks.0.attn"].weights[1, [0, 3]]
    torch.testing.assert_close(
        torch.as_tensor(page.weights(page.data["calls"][1])).float(), expected, atol=1e-6, rtol=0
    )


def test_a_map_is_shown_as_the_same_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "open_in_browser", lambda _: False)
    weights = AttentionMap.of_query_key(torch.randn(2, 3, 4), torch.randn(2, 3, 4))
    file = regard.show(weights, tokens=list("abc"), file=tmp_path / "b.html")
    assert Read(Path(str(file))).data["calls"] == saved(tmp_path, weights, tokens=list("abc")).data["calls"]
    monkeypatch.setattr(show, "in_notebook", lambda: True)
    monkeypatch.setattr(show, "find_spec", lambda _: None)
    assert "attention weights" in regard.show(weights)._repr_html_()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"tokens": ["a"]}, r"tokens: 1 labels for 6 queries of layer 0, weights \(1, 2, 6, 6\)"),
        ({"word": "bank"}, "save_page: word chooses of traces, and Tensor has none"),
        ({"numbers": "int8"}, "numbers: given 'int8', needs 'int16' or 'float32'"),
        ({"heads": [2]}, "head 2"),
        ({"limit": 100}, "page: it would have about"),
        ({}, "page: layer 0 has 72 weights without queries and keys, 70 are the most: .* draw it with regard.plot"),
    ],
)
def test_what_is_refused_before_anything_is_computed(
    how: Any, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_page, "call_data", None)
    monkeypatch.setattr(attention_page, "DENSE", 1000 if how else 70)
    with pytest.raises(RegardError, match=says):
        regard.save_page((torch.rand(1, 2, 6, 6),), tmp_path / "a.html", **how)
    assert not (tmp_path / "a.html").exists()


def test_a_trace_takes_no_labels(bank: Any, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="tokens, key_tokens and batch are for attention without a trace"):
        regard.save_page(bank[0], tmp_path / "a.html", tokens=["a"])
