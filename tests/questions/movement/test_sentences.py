"""The lines and points that a picture has of a word's way are those of the summary."""

import pytest

from regard import neutral_sentences
from regard.display.panels import Curves, Scatter
from regard.explain.texts.curves import curves
from regard.explain.texts.summary import summarise
from regard.questions.movement import sentences as way
from regard.questions.movement.sentences import way_panels


def test_lines_and_points_are_the_summarys(bank, minilm) -> None:
    control = minilm.trace(neutral_sentences("bank"))
    summary = summarise(bank, "bank", references=[minilm.trace("money"), minilm.trace("river")], control=control)
    lines, (plane, alike) = way_panels(summary)
    for panel, curve in zip(lines, curves(summary), strict=True):
        assert isinstance(panel, Curves)
        assert f"“{curve.word}”" in panel.title
        assert [each.y for each in panel.series] == [*curve.paths, curve.neutral.mean]
        assert (panel.series[-1].low, panel.series[-1].high) == (curve.neutral.low, curve.neutral.high)
        assert list(panel.series[0].x) == list(range(-1, 6)), "-1 is what enters layer 0"
    assert isinstance(plane, Scatter)
    moved = summary.movement
    places = [*(path[0] for path in moved.words), moved.neutral, *moved.references]
    assert [(point.x, point.y) for point in plane.points] == places
    assert [point.label for point in plane.points] == ["★ 1", "★ 2", "○", "◆ money", "◆ river"]
    assert [point.after for point in plane.points[:2]] == [2 if leaves else None for leaves in moved.leaves]
    assert [each.y for each in alike.series] == [summary.pairs[0].hidden_states]


def test_without_reference_words_the_plane_has_the_path(bank) -> None:
    _, (plane, _) = way_panels(summarise(bank, "bank"))
    first = plane.points[:7]
    assert [point.label for point in first] == ["in", "0", "1", "2", "3", "4", "★ 1"]
    assert [point.after for point in first] == [None, *range(6)]


def test_what_has_no_room_is_named(minilm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(way, "MOST", 2)
    trace = minilm.trace("bank by bank by bank")
    lines, rest = way_panels(summarise([trace], "bank", references=[minilm.trace(w) for w in "abc"]), ["1c"])
    assert len(lines) == 2
    assert "2 of 3 reference words are drawn; --json has all. 2 of 3 occurrences are drawn" in lines[0].caption
    assert {each.name for each in lines[0].series} == {"1a", "1c"}
    assert rest[-1].title.endswith("(1 of 3 pairs)")
