from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from regard.explain.summary import summarise
from regard.views.figures.canvas import spread
from regard.views.figures.summary import draw


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"layer": 3}, {"layer": 3, "head": 5}, {"head": 0}])
@pytest.mark.parametrize("word", ["bank", None])
def test_pictures(bank, tmp_path: Path, options: dict[str, int], word: str | None) -> None:
    notes = draw(summarise(bank, word, **options), bank, tmp_path / "a.png", **options)
    assert notes == []
    picture = matplotlib.image.imread(tmp_path / "a.png")
    assert picture.shape[0] > 500
    assert picture.shape[1] > 500
    pixels = (picture * 255).round().astype(np.uint32) @ (1 << np.arange(0, 8 * picture.shape[2], 8, dtype=np.uint32))
    assert len(np.unique(pixels)) > 100  # not blank: colours as whole numbers, which sort fast


@pytest.mark.slow
def test_svg_by_its_ending_and_the_same_each_time(bank, minilm, tmp_path: Path) -> None:
    summary = summarise(bank, "bank", references=[minilm.trace("money")])
    for name in ("a.svg", "b.SVG"):
        draw(summary, bank, tmp_path / name)
    first = (tmp_path / "a.svg").read_bytes()
    assert first.startswith(b"<?xml")
    assert first == (tmp_path / "b.SVG").read_bytes()


@pytest.mark.slow
def test_a_long_text(minilm, tmp_path: Path) -> None:
    trace = minilm.trace("the river bank " + "and the old man at sea " * 50)
    draw(summarise([trace], "bank"), [trace], tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


@pytest.mark.slow
def test_characters_without_a_glyph_are_named(minilm, tmp_path: Path) -> None:
    trace = minilm.trace("bank 水")
    notes = draw(summarise([trace], "bank"), [trace], tmp_path / "a.png")
    assert notes == [] or "CJK UNIFIED IDEOGRAPH-6C34" in notes[0]
    trace = minilm.trace("a $x_1$ & <b>bank</b>")  # neither mathematics nor markup
    assert draw(summarise([trace], "bank"), [trace], tmp_path / "a.svg") == []
    assert {"$", "&", "<", "/"} <= set(written(tmp_path / "a.svg"))


def written(file: Path) -> list[str]:
    """The texts of an SVG, as whoever opens it reads them."""
    return [element.text or "" for element in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.slow
def test_the_text_of_an_svg_is_text(bank, minilm, tmp_path: Path) -> None:
    summary = summarise(bank, "bank", references=[minilm.trace("money")])
    draw(summary, bank, tmp_path / "a.svg")
    found = written(tmp_path / "a.svg")
    for trace in bank:
        assert {token.text for token in trace.tokens} <= set(found)
    assert any(text.startswith("Text 1: attention weights, layer 0") for text in found)
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert drawn.count("sans-serif") >= len(found)  # the last resort of every text's list of fonts


def test_characters_without_a_glyph_stay_in_an_svg(minilm, tmp_path: Path) -> None:
    trace = minilm.trace("bank 水")
    notes = draw(summarise([trace], "bank"), [trace], tmp_path / "a.svg")
    assert "水" in written(tmp_path / "a.svg")
    assert notes == [] or notes[0].endswith("an SVG is drawn with the fonts of whoever opens it")


def test_labels_keep_apart() -> None:
    places = [0, 1, 2, 50, 51, 97, 98, 99]
    found = spread(places, 4.0, 99.5)
    assert all(b - a > 3.999 for a, b in pairwise(found))
    assert max(found) <= 99.5
    assert found[0] == 0
    assert found[3] == 50
    assert spread([3, 9], 4.0, 20.0) == [3, 9]
    assert spread(list(range(10)), 4.0, 9.0) == pytest.approx(range(10))  # more than there is room for
