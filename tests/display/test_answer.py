"""An answer in every medium: all of them say the same findings, title and numbers."""

import importlib
import importlib.util
import json
import pkgutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

import regard.corpus.questions
import regard.questions
from regard.display.answer import MAX_PARTS, Answer, Read, TracesAnswer, panel_data
from regard.display.canvas import all_axes
from regard.display.panels import Bars, Column, Panel, Strip, Table
from regard.display.terminal_parts import plain_lines_of_parts
from regard.errors import RegardError
from regard.shown import Row
from regard.trace.status import Status
from regard.web.page import HasPage
from tests.display.samples import hard, plain

STATUS = Status("a model", ("blocks",), "cpu", "float32", 1e-7, 3, None)


@dataclass(frozen=True, eq=False, repr=False)
class Example(Answer):
    """Numbers of words."""

    format: ClassVar[str] = "regard example"
    numbers: dict[str, float]

    def title(self) -> str:
        return "Words and numbers"

    def findings(self) -> list[str]:
        return [f"“{max(self.numbers, key=self.numbers.__getitem__)}” has most."]

    def rows(self) -> list[Row]:
        return [{"word": word, "number": number} for word, number in self.numbers.items()]

    def panels(self) -> list[Panel]:
        words = list(self.numbers)
        return [
            Strip(name="Text", title="Text", tokens=words, values=list(self.numbers.values()), unit="n"),
            Bars(name="Bars", title="Bars", parts=list(self.numbers.items()), unit="n", screen=True, picture=True),
        ]

    def exactness(self) -> list[str]:
        return ["They are exact."]


@pytest.fixture
def found() -> Example:
    return Example({"bank": 2.5, "river": float("nan")})


def test_it_prints_its_findings_and_the_panels_of_a_first_screen(found: Example) -> None:
    text = str(found)
    assert text == repr(found)
    assert "“bank” has most." in text
    assert "Bars" in text
    assert "Text" not in text
    assert "“bank” has most." in found._repr_html_()


def test_json_has_findings_texts_rows_and_statuses_and_no_nan(found: Example) -> None:
    data = replace(found, about=Read((("a bank", None),), (STATUS,))).to_json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["format"], data["version"], data["findings"]) == ("regard example", 1, ["“bank” has most."])
    assert (data["texts"], data["targets"]) == (["a bank"], [None])
    assert data["rows"] == [{"word": "bank", "number": 2.5}, {"word": "river", "number": None}]
    assert data["statuses"][0]["model"] == "a model"


def test_it_draws_the_panels_that_are_named_or_make_its_picture(found: Example) -> None:
    assert len(all_axes(found.plot())) == 1
    assert len(all_axes(found.plot("Text", "Bars"))) == 2
    with pytest.raises(RegardError, match="^plot: got 'Nothing', expected one of 'Text', 'Bars'$"):
        found.plot("Nothing")


def test_a_screen_goes_without_the_details_of_a_table() -> None:
    columns = [Column("word"), Column("what it is", detail=True), Column("number", 1)]
    table = Table(
        name="Words", title="Words", columns=columns, rows=[["bank", "beside a river", 2.5]], total=["all", "", 3.5],
        screen=True,
    )  # fmt: skip

    class Detailed(Example):
        def panels(self) -> list[Panel]:
            return [table]

    answer = Detailed({"bank": 2.5})
    lines = [" ".join(line.split()) for line in plain_lines_of_parts(answer.shown(200), 200)]
    assert {"word number", "bank 2.5", "all 3.5"} <= set(lines)
    assert not any("left out" in line or "river" in line for line in lines)
    page = answer.page().panels[0]
    assert (page["rows"], page["total"]) == ([["bank", "beside a river", 2.5]], ["all", "", 3.5])


def test_its_page_has_every_panel_and_how_exact_it_is(found: Example) -> None:
    page = found.page()
    assert (page.title, list(page.findings), page.status) == (found.title(), found.findings(), ["They are exact."])
    assert [panel["name"] for panel in page.panels] == ["Text", "Bars"]
    given = replace(found, about=Read((("a bank", None),), (STATUS,))).page()
    assert given.status[0] == "Computed with a model (float32, cpu), attention by blocks."
    assert isinstance(found, HasPage)
    assert not isinstance("a text", HasPage)


def test_it_writes_its_page(found: Example, tmp_path: Path, monkeypatch: Any) -> None:
    written: list[Any] = []
    monkeypatch.setattr("regard.views.save_page.check_page_built", lambda: None)
    monkeypatch.setattr("regard.views.save_page.write_page", lambda page, *_: written.append(page) or 7)
    assert found.save_page(tmp_path / "a.html") == 7
    assert written[0].title == found.title()


def test_what_a_question_has_to_say_is_not_passed_over_in_silence() -> None:
    for method in (Answer().title, Answer().findings, Answer().panels, Answer().rows):
        with pytest.raises(NotImplementedError):
            method()


TOLD = {  # of 26 kinds of answers those that show themselves in every medium: only more may be added
    "Attribution", "TokenAttribution", "Heads", "PatchSweep", "ScoreSources",
    "Seen", "Concordance", "Senses", "Shift",
}  # fmt: skip


def test_every_kind_of_answer_that_has_moved_says_and_shows_what_it_found() -> None:
    kinds: dict[str, type[Answer]] = {}
    for module in [
        *pkgutil.walk_packages(regard.questions.__path__, "regard.questions."),
        *pkgutil.walk_packages(regard.corpus.questions.__path__, "regard.corpus.questions."),
    ]:
        there = vars(importlib.import_module(module.name)).values()
        kinds |= {each.__name__: each for each in there if isinstance(each, type) and issubclass(each, Answer)}
    del kinds["Answer"]
    kinds.pop("TracesAnswer", None)
    assert set(kinds) >= TOLD
    for name, kind in kinds.items():
        for own in ("title", "findings", "panels", "rows"):
            assert getattr(kind, own) is not getattr(Answer, own), f"{name} has no {own}"
        rooms = [each.__module__.rpartition(".")[0] for each in kind.__mro__ if ".questions." in each.__module__]
        hero = name == "Steps" or any(importlib.util.find_spec(f"{room}.picture") for room in rooms)
        base = TracesAnswer if issubclass(kind, TracesAnswer) else Answer
        for shared in ("to_json", "to_frame", "save_page", "_repr_html_", *([] if hero else ["plot", "page", "shown"])):
            assert getattr(kind, shared) is getattr(base, shared), f"{name} tells {shared} by itself"
        assert kind.format.startswith("regard "), name


@pytest.mark.parametrize("panel", [*plain(), *hard()], ids=lambda panel: f"{type(panel).__name__} {panel.name}")
def test_a_panel_is_plain_json(panel: Panel) -> None:
    data = panel_data(panel)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["name"], data["title"], data["note"]) == (panel.name, panel.title, panel.note)


def test_of_many_bars_the_others_are_counted_and_summed_up() -> None:
    parts = [(f"p{n}", float(2000 - n)) for n in range(1000)]
    panel = Bars(name="b", title="b", unit="adds", parts=parts, whole=sum(each for _, each in parts))
    data = panel_data(panel)
    assert data["parts"] == [list(part) for part in parts[:MAX_PARTS]]
    assert data["others"] == [1000 - MAX_PARTS, sum(each for _, each in parts[MAX_PARTS:])]
    assert panel_data(replace(panel, parts=parts[:MAX_PARTS]))["others"] is None


def test_a_tables_total_is_no_row() -> None:
    data = panel_data(plain()[0])
    assert len(data["rows"]) == 3
    assert data["total"] == ["all", 1.25]


def test_a_caption_is_told_where_title_and_note_do_not_say_it() -> None:
    panel = replace(plain()[1], caption="By a method.")
    assert panel_data(panel)["caption"] == "By a method."
    assert "caption" not in panel_data(replace(panel, title="Parts, by a method"))
    assert "caption" not in panel_data(replace(panel, note="By a method. Red adds."))
    assert "caption" not in panel_data(plain()[1])


def test_another_kind_of_panel_is_not_passed_over_in_silence() -> None:
    with pytest.raises(NotImplementedError, match="Panel"):
        panel_data(Panel(name="a", title="b"))
