"""None"""

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import RegardError
from regard.trace.trace import Trace
from regard.web import built_page
from regard.web.assemble import Choice, page_of
from regard.web.html_file import join_pages_into_one, write_page
from tests.questions.test_heads import answer_of, mean_scores_of
from tests.questions.test_patch import made as sweep
from tests.support.web_pages import Read, build_nothing


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built page that shows nothing."""
    build_nothing(tmp_path / "built", monkeypatch)
    return tmp_path / "built"


def test_one_call_writes_one_file(bank: list[Trace], built: Path, tmp_path: Path) -> None:
    file = tmp_path / "bank.html"
    size = regard.save_page(bank[0], file, word="bank", title="River", steps=[0], numbers="float32", layers=[0, 1])
    assert size == file.stat().st_size
    page = Read(file)
    assert page.data["title"] == "River"
    assert [call["layer"] for call in page.data["calls"]] == [0, 1]
    assert page.data["calls"][0]["query"]["scales"] is None
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
    ("name", "says"), [("a.txt", "ending needs to be .html"), ("none/a.html", "there is no folder")]
)
def test_where_it_cannot_be_written(bank: list[Trace], built: Path, tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        regard.save_page(bank[0], tmp_path / name)


def test_without_a_built_page_nothing_is_computed(bank: list[Trace], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(built_page, "BUILT", tmp_path)
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


@pytest.mark.parametrize(
    "chosen", [{"word": "bank"}, {"layers": [0]}, {"heads": [1]}, {"numbers": "float32"}, {"steps": True}]
)
def test_what_chooses_of_traces_is_refused_for_numbers(built: Path, tmp_path: Path, chosen: Any) -> None:
    with pytest.raises(RegardError, match=f"save_page: {next(iter(chosen))} chooses of traces, and Heads has none"):
        regard.save_page(answer_of(mean_scores_of()), tmp_path / "b.html", **chosen)
    assert not (tmp_path / "b.html").exists()


def test_what_was_found_stands_beside_traces_or_alone(bank: list[Trace], built: Path, tmp_path: Path) -> None:
    regard.save_page([sweep(), answer_of(mean_scores_of())], tmp_path / "a.html")
    page = Read(tmp_path / "a.html").data
    assert (page["calls"], [panel["name"] for panel in page["panels"]][:3]) == (
        [],
        ["Patches", "Patch by patch", "previous"],
    )
    with pytest.raises(RegardError, match="save_page: layers chooses of traces, and PatchSweep has none"):
        regard.save_page([sweep(), answer_of(mean_scores_of())], tmp_path / "a.html", layers=[0])
    regard.save_page([bank[0], sweep()], tmp_path / "b.html", layers=[0])
    page = Read(tmp_path / "b.html").data
    assert [call["layer"] for call in page["calls"]] == [0]
    assert [panel["name"] for panel in page["panels"]] == ["Patches", "Patch by patch"]
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
    assert [panel["name"] for panel in page.panels][:5] == [
        "Patches", "Patch by patch", "Patches (2)", "Patch by patch (2)", "previous"
    ]  # fmt: skip
    assert page.opening["view"] == "panel 0"
