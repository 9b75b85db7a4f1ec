"""BertViz's calls open the page at its weights, with its tokens; what the page cannot do is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.errors import RegardError
from regard.views import show
from tests.support.web_pages import Read, build_nothing

W, CROSS = torch.rand(3, 1, 4, 3, 3).softmax(-1), torch.rand(3, 1, 4, 2, 3).softmax(-1)
TOKENS, PRETTY = ["Ġa", "b</w>", "▁c"], ["a", "b", "c"]


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_nothing(tmp_path / "built", monkeypatch)


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "open_in_browser", lambda _: False)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_a_head_view_opens_at_a_layer_and_a_head(tmp_path: Path) -> None:
    tokens: Any = np.array(TOKENS)
    file: Any = regard.head_view(tuple(W), tokens, layer=1, heads=[2, 3], file=tmp_path / "a.html")
    page = Read(file)
    assert page.data["opening"] == {"view": "overview", "call": 1, "head": 2, "token": None}
    assert [text["tokens"]["text"] for text in page.data["texts"]] == [PRETTY]
    for number, call in enumerate(page.data["calls"]):
        assert (call["name"], call["layer"]) == (f"layer.{number}", number)
        torch.testing.assert_close(torch.tensor(page.weights(call)).float(), W[number, 0], atol=1e-6, rtol=0)


def test_a_model_view_of_an_encoder_decoder() -> None:
    stacks: dict[str, Any] = {"encoder_attention": tuple(W), "cross_attention": tuple(CROSS)}
    stacks["decoder_attention"] = tuple(CROSS[..., :2])
    names: dict[str, Any] = {"encoder_tokens": TOKENS, "decoder_tokens": ["Ġx", "y"], "prettify_tokens": False}
    file: Any = regard.model_view(**stacks, **names, include_layers=[0, 2], include_heads=[1], html_action="view")
    page = Read(file)
    assert page.data["opening"]["view"] == "map"
    assert [text["tokens"]["text"] for text in page.data["texts"]] == [TOKENS, ["Ġx", "y"]]
    calls = [(call["name"], call["queries"], call["keys"], call["head_numbers"]) for call in page.data["calls"]]
    sides = {"encoder": (0, 0), "decoder": (1, 1), "cross": (1, 0)}
    assert calls == [(f"{each}.layer.{n}", *both, [1]) for each, both in sides.items() for n in (0, 2)]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({}, "got no attention"),
        (
            {"attention": tuple(W), "tokens": ["a"]},
            r"tokens: 1 labels for 3 queries of layer 0, weights \(1, 4, 3, 3\)",
        ),
        ({"attention": tuple(W), "layer": 3}, r"layer 3 isn't in \[0, 1, 2\]"),
        ({"attention": tuple(W), "heads": [4]}, "head 4 is out of range: the page has heads 0 to 3"),
        ({"attention": tuple(W), "include_layers": [5]}, "layer 5 isn't in"),
        ({"attention": tuple(W), "view": "film"}, "view: got 'film', expected 'tokens' or 'map'"),
        ({"attention": tuple(W), "sentence_b_start": 2}, "sentence_b_start: the page has no such option: leave it out"),
        ({"attention": tuple(W), "html_action": "save"}, "html_action: the page has no such option"),
    ],
)
def test_what_is_refused(how: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        regard.head_view(**how)
    with pytest.raises(RegardError, match="display_mode: the page has no such option"):
        regard.model_view(tuple(W), display_mode="dark")
