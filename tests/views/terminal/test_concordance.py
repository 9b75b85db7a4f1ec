import io

from rich.console import Console

from regard.corpus.asking.find_sentences import concordance_sentences
from regard.corpus.asking.occurrences import Line
from regard.views.terminal.concordance import context_lines, show_concordance


def line(left: str, form: str, right: str, similarity: float | None = None) -> Line:
    return Line(left, form, right, form, "d", 7, 9, "a.txt", None, {}, "s", 0, similarity)


def test_forms_stand_below_each_other_and_fit() -> None:
    found = [each.plain for each in context_lines(
        [line("", "Bank", " notes"), line("x" * 90 + " a ", "banks", "\x1b[31m, and " + "y" * 90)], 60)]  # fmt: skip
    assert found[0].index("Bank") == found[1].index("banks")
    assert all(len(each) <= 60 for each in found)
    assert "\x1b" not in found[1]
    assert all(each.endswith("d:7") for each in found)


def test_similarities_stand_in_front() -> None:
    (only,) = context_lines([line("a ", "bank", " b", 0.876)], 60)
    assert only.plain.startswith("0.88  ")
    assert context_lines([], 60) == []


def test_the_sentences_speak_of_the_lines_that_are_shown(cloud_store) -> None:
    found = cloud_store.find("bank")
    console = Console(width=200, file=io.StringIO())
    show_concordance(found, console, 4)
    said = console.file.getvalue()
    assert concordance_sentences(found, 4)[0] in said
    assert "here are the first 4" in said
    assert "… and 26 more lines" in said
