"""Pages of traces and of any attention: what stands on them, and what is refused before anything is computed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.attention.recording import scope
from regard.errors import RegardError
from regard.trace.trace import Trace
from regard.views import save_page as saving
from regard.views import show
from regard.web import html_file
from regard.web.assemble import Choice, page_of
from regard.web.html_file import join_pages_into_one, write_page
from tests.questions.patch.test_answer import made as sweep
from tests.questions.test_heads import answer_of, mean_scores_of
from tests.support.web_pages import Read, build_nothing

WEIGHTS = torch.rand(2, 1, 3, 2, 4).softmax(-1)  # layers, batch, heads, queries, keys


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built page that shows nothing."""
    build_nothing(tmp_path / "built", monkeypatch)
    return tmp_path / "built"


@pytest.mark.usefixtures("built")
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


@pytest.mark.usefixtures("built")
def test_recorded_calls_are_on_the_page_by_their_paths(tmp_path: Path) -> None:
    query, key = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8)
    with regard.record() as calls:
        for path in ("blocks.0.attn", "blocks.1.attn", "blocks.1.attn"):
            with scope(path):
                regard.attend(query, key, key, causal=True)
    regard.save_page(calls, tmp_path / "a.html", batch=1, layers=[1], heads=[0, 3])
    page = Read(tmp_path / "a.html")
    assert page.data["title"] == "attention weights of 2 calls, 2 heads of 5 × 5 tokens, batch item 1 of 2"
    assert [text["tokens"]["text"] for text in page.data["texts"]] == [list("01234")]
    for nth, call in enumerate(page.data["calls"]):
        assert (call["name"], call["nth"], call["head_numbers"]) == (f"blocks.1.attn, {nth}", nth, [0, 3])
        assert "given" not in call
        expected = calls["blocks.0.attn"].weights[1, [0, 3]]
        torch.testing.assert_close(
            torch.as_tensor(page.weights(call)).float(), expected, atol=call["difference"] + 1e-6, rtol=0
        )


@pytest.mark.usefixtures("built", "no_checks_of_annotations")
@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"tokens": ["a"]}, r"tokens: 1 labels for 2 queries of layer 0, weights \(1, 3, 2, 4\)"),
        ({"word": "bank"}, "save_page: word chooses of traces, and Tensor has none"),
        ({"heads": [3]}, "head 3"),
        ({"limit": 100}, "page: it would have about"),
        ({}, "page: layer 0 has 24 weights without queries and keys, 20 are the most: .* draw it with regard.plot"),
    ],
)
def test_what_is_refused_before_anything_is_computed(
    how: Any, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "call_data", None)
    monkeypatch.setattr(saving, "DENSE", 1000 if how else 20)
    with pytest.raises(RegardError, match=says):
        regard.save_page(tuple(WEIGHTS), tmp_path / "a.html", **how)
    assert not (tmp_path / "a.html").exists()


@pytest.mark.usefixtures("built")
def test_a_trace_takes_no_labels(bank: Any, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="grid and image are for attention without a trace: leave them out"):
        regard.save_page(bank[0], tmp_path / "a.html", tokens=["a"])


@pytest.mark.usefixtures("built")
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


def test_one_call_writes_one_file(bank: list[Trace], built: Path, tmp_path: Path) -> None:
    file = tmp_path / "bank.html"
    size = regard.save_page(bank[0], file, word="bank", title="River", steps=[0], layers=[0, 1])
    assert size == file.stat().st_size
    page = Read(file)
    assert page.data["title"] == "River"
    assert [call["layer"] for call in page.data["calls"]] == [0, 1]
    assert len(page.data["steps"]) == 1
    assert page.data["opening"]["token"] == bank[0].word("bank")[0].tokens[0]


def test_reference_words_stand_beside_the_word(minilm: Any, bank: list[Trace], built: Path, tmp_path: Path) -> None:
    words = [minilm.trace(each) for each in ("river", "money")]
    for given, names in ((words, ["river", "money"]), (words[0], ["river"])):
        regard.save_page(bank, tmp_path / "bank.html", word="bank", references=given)
        (panel,) = (each for each in Read(tmp_path / "bank.html").data["panels"] if each["kind"] == "paths")
        assert [curve["label"] for curve in panel["curves"]] == names


def test_neutral_sentences_tell_where_the_texts_move_the_word(
    minilm: Any, bank: list[Trace], built: Path, tmp_path: Path
) -> None:
    words, control = [minilm.trace("river")], minilm.trace(regard.neutral_sentences("bank"))
    regard.save_page(bank, tmp_path / "bank.html", word="bank", references=words, control=control)
    data = Read(tmp_path / "bank.html").data
    assert any(each.startswith("Text 1 moves “bank” towards “river” (cosine 0.48, ") for each in data["findings"])
    (panel,) = (each for each in data["panels"] if each["kind"] == "paths")
    assert panel["curves"][0]["neutral"]["sentences"] == 39
    with pytest.raises(RegardError, match="control needs references: pass both"):
        regard.save_page(bank, tmp_path / "none.html", word="bank", control=control)
    assert not (tmp_path / "none.html").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [({}, "references needs word"), ({"word": "bank", "findings": ["A sentence."]}, "findings replaces")],
)
def test_reference_words_that_nothing_is_shown_of(
    bank: list[Trace], built: Path, tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(RegardError, match=says):
        regard.save_page(bank, tmp_path / "bank.html", **{"references": bank[:1], **options})
    assert list(tmp_path.glob("*.html")) == []


@pytest.mark.parametrize(
    ("name", "says"), [("a.txt", "file name must end in .html"), ("none/a.html", "there is no folder")]
)
def test_where_it_cannot_be_written(bank: list[Trace], built: Path, tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        regard.save_page(bank[0], tmp_path / name)


def test_without_a_built_page_nothing_is_computed(bank: list[Trace], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(html_file, "BUILT", tmp_path)
    monkeypatch.setattr("regard.views.save_page.page_as_seen", lambda *_, **__: pytest.fail("was computed"))
    with pytest.raises(RegardError, match="the page is not built: run make page"):
        regard.save_page(bank[0], tmp_path / "a.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("some_page")
def test_the_limit_holds_for_what_is_written(bank: list[Trace], tmp_path: Path) -> None:
    page: Any = page_of(bank[0], Choice(limit=None))
    with pytest.raises(RegardError, match="page: it would have about"):
        write_page(page, tmp_path / "a.html", 1000)
    assert list(tmp_path.iterdir()) == []
    assert write_page(page, tmp_path / "a.html", None) > 1000


def test_what_a_store_found_is_a_page_too(bank_store: Any, built: Path, tmp_path: Path) -> None:
    found = bank_store.senses("bank", checked=0)
    size = regard.save_page(found, tmp_path / "a.html", title="Banks", findings=["Two."])
    assert size == (tmp_path / "a.html").stat().st_size
    page = Read(tmp_path / "a.html")
    assert (page.data["title"], page.data["findings"]) == ("Banks", ["Two."])
    assert len(page.data["panels"][0]["points"]) == len(found.found)
    assert (page.data["calls"], page.blobs) == ([], {})
    regard.save_page(answer_of(mean_scores_of()), tmp_path / "b.html")
    assert Read(tmp_path / "b.html").data["panels"][0]["name"] == "previous"


@pytest.mark.parametrize("chosen", [{"word": "bank"}, {"layers": [0]}, {"heads": [1]}, {"steps": True}])
def test_what_chooses_of_traces_is_refused_for_numbers(built: Path, tmp_path: Path, chosen: Any) -> None:
    with pytest.raises(RegardError, match=f"save_page: {next(iter(chosen))} chooses of traces, and Heads has none"):
        regard.save_page(answer_of(mean_scores_of()), tmp_path / "b.html", **chosen)
    assert not (tmp_path / "b.html").exists()


def test_what_was_found_stands_beside_traces_or_alone(bank: list[Trace], built: Path, tmp_path: Path) -> None:
    regard.save_page([sweep(), answer_of(mean_scores_of())], tmp_path / "a.html")
    page = Read(tmp_path / "a.html").data
    assert (page["calls"], [panel["name"] for panel in page["panels"]][:2]) == ([], ["Patches", "previous"])
    with pytest.raises(RegardError, match="save_page: layers chooses of traces, and PatchSweep has none"):
        regard.save_page([sweep(), answer_of(mean_scores_of())], tmp_path / "a.html", layers=[0])
    regard.save_page([bank[0], sweep()], tmp_path / "b.html", layers=[0])
    page = Read(tmp_path / "b.html").data
    assert [call["layer"] for call in page["calls"]] == [0]
    assert [panel["name"] for panel in page["panels"]] == ["Patches"]
    assert page["findings"][-1] == sweep().findings()[-1]
    assert page["opening"]["view"] == "overview"


def test_several_are_one_with_a_tab_for_each_panel() -> None:
    pages = [found.page() for found in (sweep(), sweep(direction="noising"), answer_of(mean_scores_of()))]
    said = [
        f"{page.title}. {sentence}" if n == 0 else sentence
        for page in pages
        if page
        for n, sentence in enumerate(page.findings)
    ]
    page = join_pages_into_one([page for page in pages if page])
    assert page.title == f"{sweep().title()} (and 2 more)"
    assert list(page.findings) == said
    assert [panel["name"] for panel in page.panels][:3] == ["Patches", "Patches (2)", "previous"]
    assert page.opening["view"] == "panel 0"
