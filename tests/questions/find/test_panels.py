"""A concordance in every medium, held against its lines."""

from typing import Any

import pytest

from regard.corpus.asking.occurrences import Line
from regard.display.terminal_parts import plain_lines_of_parts
from regard.errors import RegardError
from regard.questions.find import answer
from regard.questions.find.answer import Concordance


def line(left: str, form: str, right: str, similarity: float | None = None) -> Line:
    return Line(left, form, right, form, "d", 7, 9, "a.txt", None, {}, "s", 0, similarity)


def made(*lines: Line, like: str | None = None) -> Concordance:
    return Concordance("bank", lines, len(lines), "source", like, 5, ("the store is not finished",))


def test_forms_stand_below_each_other_and_fit() -> None:
    lines = line("", "Bank", " notes"), line("x" * 90 + " a ", "banks", "\x1b[31m, and " + "y" * 90)
    said = plain_lines_of_parts(made(*lines).shown(60), 60)
    (one,), (other,) = ([each for each in said if form in each] for form in ("Bank", "a banks"))
    assert one.index("Bank") == other.index("banks")
    assert all(len(each) <= 60 for each in said)
    assert "\x1b" not in "".join(said)
    assert all(each.split()[-2:] == ["d", "7"] for each in (one, other))


def test_what_is_left_out_is_said_and_similarities_are_there() -> None:
    lines = [line("a ", "bank", f" {n}", 0.876) for n in range(30)]
    said = "\n".join(plain_lines_of_parts(made(*lines, like="a bank").shown(80, 4, "--json"), 80))
    assert said.count("0.88") == 5  # and in the sentence
    assert "Not shown: 26 more rows (see --json)" in said
    assert "Occurrences" in "\n".join(plain_lines_of_parts(made().shown(80), 80))


def test_page_and_json_have_every_line(cloud_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cloud_store.find("bank")
    page: Any = found.page().data()
    assert [row[2] for row in page["panels"][0]["rows"]] == [each.start for each in found.lines]
    assert (page["title"], page["status"]) == ("“bank” in the corpus", list(found.notes))
    data: Any = found.to_json()
    assert (data["format"], data["findings"], data["total"]) == ("regard find", found.findings(), 30)
    assert [each["start"] for each in data["lines"]] == [each.start for each in found.lines]
    monkeypatch.setattr(answer, "MOST", 29)
    with pytest.raises(RegardError, match="'bank' has 30 lines, 29 are the most that a page shows"):
        found.page()
