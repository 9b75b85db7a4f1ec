"""The places and cosines drawn are those of the static vectors."""

import pytest
import torch
from matplotlib.figure import Figure

from regard.explain.vectors.static_words import Static, StaticWord, static_words
from regard.views.figures.static_words import paint


def painted(static):
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    paint(figure, figure.add_gridspec(1, 1)[0, 0], static)
    return figure.axes


def test_places_and_cosines() -> None:
    generator = torch.Generator().manual_seed(5)
    vectors = {word: torch.randn(7, generator=generator) for word in ("bank", "money", "river")}
    static = static_words(vectors, "bank", ["money", "river", "unknown"], "a file")
    plane, bars = painted(static)
    drawn = {line.get_gid(): tuple(line.get_xydata()[0]) for line in plane.lines}
    assert drawn == {f"word {each.word}": each.place for each in static.words if each.place is not None}
    assert {text.get_text() for text in plane.texts} == {"bank", "money", "river"}
    assert "“bank” as a static vector (a file): one point in every text" in plane.get_title()
    assert "Seen from the ★: nearer here is nearer in all 7 dimensions" in plane.get_title()
    largest = sorted(static.words[1:3], key=lambda each: -each.cosine)  # the first is the nearest
    assert [bar.get_width() for bar in bars.patches] == pytest.approx([each.cosine for each in largest])
    assert [label.get_text() for label in bars.get_yticklabels()] == [each.word for each in largest]


def test_a_plane_that_shows_another_order_says_so() -> None:
    words = [
        StaticWord("bank", 1.0, (0.0, 0.0)),
        StaticWord("money", 0.5, (2.0, 0.0)),
        StaticWord("river", 0.2, (1.0, 0.0)),
    ]
    plane, _ = painted(Static("a file", 7, words, (0.5, 0.2)))
    said = "Not to be read off as it stands: in all 7 dimensions “money” is nearer than “river”"
    assert plane.get_title().splitlines()[1] == said


def test_the_word_alone() -> None:
    static = static_words({"bank": torch.ones(3), "x": torch.zeros(3)}, "bank", ["other"], "a file")
    plane, bars = painted(static)
    assert [line.get_gid() for line in plane.lines] == ["word bank"]
    assert not bars.patches
