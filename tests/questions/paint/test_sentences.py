"""What is said of a painted line, held against painters whose heat is the cause, and is not."""

from dataclasses import replace

import pytest

from regard.questions.paint import answer
from regard.questions.paint.answer import painting
from regard.questions.paint.sentences import corner_name
from regard.train.scene_words import read_scene
from tests.questions.paint.test_answer import SCENE, small
from tests.train.test_painter_measures import knowing


def said(monkeypatch: pytest.MonkeyPatch, text: str = SCENE.text, **known: bool) -> list[str]:
    monkeypatch.setattr(answer, "paint", knowing(**known))
    return painting(small(), read_scene(text), samples=4).findings()


def test_heat_that_is_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, through_edges=True, pointing=True) == [
        "Of 4 pictures, 4 have seven top left and 4 have two bottom right.",
        "“seven” is looked at most top left in 4 of 4 (0.97 of it), “two” is looked at most bottom right in 4 of 4 "
        "(0.97 of it).",
        "With the keys of “seven” and “two” exchanged, 4 have two top left and 4 have seven bottom right.",
        "With the keys of both phrases exchanged, 4 have two top left and 4 have seven bottom right.",
        "With the edges to “seven” cut, 0 still have seven top left, and 4 have two bottom right.",
        "With the edges to “two” cut, 0 still have two bottom right, and 4 have seven top left.",
        "The heat of these words is the cause: digits go where their words' keys go, and go with their edges.",
    ]


def test_heat_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = said(monkeypatch, through_edges=False, pointing=False)
    assert found[1].startswith("“seven” is looked at most top left in 0 of 4")
    assert found[-1] == "The heat of these words is not the cause: digits stay where they are without it."


def test_heat_that_is_some_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "paint", knowing(through_edges=True, pointing=True))
    found = painting(small(), SCENE, samples=4)
    written, swapped, phrases, *cut = found.trials
    half = swapped.digits.clone()
    half[:2] = written.digits[:2]
    mixed = replace(found, trials=(written, replace(swapped, digits=half), phrases, *cut))
    assert mixed.findings()[-1].startswith("The heat of these words is not all of the cause")


def test_of_two_same_digits_nothing_is_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    found = said(monkeypatch, "a six top left , a six top right", through_edges=True, pointing=True)
    assert found[2:] == ["Both digits are six: exchanging them would show nothing."]


def test_corners() -> None:
    assert [corner_name(n) for n in range(4)] == ["top left", "top right", "bottom left", "bottom right"]
