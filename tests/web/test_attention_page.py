"""A page of attention without a trace has its weights and labels, or is refused before anything is computed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.attention.recording import scope
from regard.errors import RegardError
from regard.views import show
from regard.web import attention_page
from tests.support.web_pages import Read, build_nothing

WEIGHTS = torch.rand(2, 1, 3, 2, 4).softmax(-1)  # layers, batch, heads, queries, keys


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_nothing(tmp_path / "built", monkeypatch)


def test_given_weights_and_labels_are_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "open_in_browser", lambda _: False)
    labels: Any = {"tokens": ["sat", "down"], "key_tokens": list("abcd"), "title": "Ours"}
    size = regard.save_page(tuple(WEIGHTS), tmp_path / "a.html", **labels)
    assert size == (tmp_path / "a.html").stat().st_size
    page = Read(tmp_path / "a.html")
    assert page.data["title"] == "Ours"
    assert [text["tokens"]["text"] for text in page.data["texts"]] == [["sat", "down"], list("abcd")]
    for number, (call, expected) in enumerate(zip(page.data["calls"], WEIGHTS, strict=True)):
        assert (call["name"], call["queries"], call["keys"], call["given"]) == (f"layer {number}", 0, 1, True)
        torch.testing.assert_close(torch.as_tensor(page.weights(call)).float(), expected[0], atol=1e-6, rtol=0)
    regard.show(tuple(WEIGHTS), file=tmp_path / "b.html", **labels)
    assert Read(tmp_path / "b.html").data == page.data
    monkeypatch.setattr(show, "in_notebook", lambda: True)
    monkeypatch.setattr(show, "find_spec", lambda _: None)
    assert "Ours" in regard.show(tuple(WEIGHTS), **labels)._repr_html_()  # type: ignore[union-attr]


def test_recorded_calls_are_on_the_page_by_their_paths(tmp_path: Path) -> None:
    query, key = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8)
    with regard.record() as calls:
        for path in ("blocks.0.attn", "blocks.1.attn", "blocks.1.attn"):
            with scope(path):
                regard.attend(query, key, key, causal=True)
    regard.save_page(calls, tmp_path / "a.html", batch=1, layers=[1], heads=[0, 3], numbers="float32")
    page = Read(tmp_path / "a.html")
    assert page.data["title"] == "attention weights of 2 calls, 2 heads of 5 × 5 tokens, batch item 1 of 2"
    assert [text["tokens"]["text"] for text in page.data["texts"]] == [list("01234")]
    for nth, call in enumerate(page.data["calls"]):
        assert (call["name"], call["nth"], call["head_numbers"]) == (f"blocks.1.attn, {nth}", nth, [0, 3])
        assert "given" not in call
        expected = calls["blocks.0.attn"].weights[1, [0, 3]]
        torch.testing.assert_close(torch.as_tensor(page.weights(call)).float(), expected, atol=1e-6, rtol=0)


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"tokens": ["a"]}, r"tokens: 1 labels for 2 queries of layer 0, weights \(1, 3, 2, 4\)"),
        ({"word": "bank"}, "save_page: word chooses of traces, and Tensor has none"),
        ({"numbers": "int8"}, "numbers: given 'int8', needs 'int16' or 'float32'"),
        ({"heads": [3]}, "head 3"),
        ({"limit": 100}, "page: it would have about"),
        ({}, "page: layer 0 has 24 weights without queries and keys, 20 are the most: .* draw it with regard.plot"),
    ],
)
def test_what_is_refused_before_anything_is_computed(
    how: Any, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_page, "call_data", None)
    monkeypatch.setattr(attention_page, "DENSE", 1000 if how else 20)
    with pytest.raises(RegardError, match=says):
        regard.save_page(tuple(WEIGHTS), tmp_path / "a.html", **how)
    assert not (tmp_path / "a.html").exists()


def test_a_trace_takes_no_labels(bank: Any, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="grid and image are for attention without a trace: leave them out"):
        regard.save_page(bank[0], tmp_path / "a.html", tokens=["a"])


def test_patches_are_named_and_drawn_over_their_image(tmp_path: Path) -> None:
    weights, picture = torch.rand(2, 1, 3, 5, 5).softmax(-1), np.zeros((30, 40, 3), np.uint8)
    regard.save_page(tuple(weights), tmp_path / "a.html", image=picture)
    (text,), status = (Read(tmp_path / "a.html").data[name] for name in ("texts", "status"))
    assert status[1] == "Tokens of an image, 2 × 2 after 1 class token."
    assert (text["name"], text["tokens"]["special"]) == ("image, 2 × 2 after 1 class token", [0])
    assert text["tokens"]["text"] == ["[CLS]", "0,0", "0,1", "1,0", "1,1"]
    shown = {name: value for name, value in text["picture"].items() if name != "src"}
    assert shown == {"size": [40, 30], "rows": 2, "columns": 2, "first": 1, "seen": [0, 0, 1, 1]}
    regard.save_page(weights[0, :, :, :2], tmp_path / "b.html", tokens=["x", "y"], grid=(1, 5))
    queries, keys = Read(tmp_path / "b.html").data["texts"]
    assert (queries["tokens"]["text"], keys["tokens"]["text"][4], "picture" in keys) == (["x", "y"], "0,4", False)
