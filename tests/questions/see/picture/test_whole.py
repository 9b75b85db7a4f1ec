from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from regard.explain.texts.highlights import highlights
from regard.explain.texts.summary import summarise
from regard.questions.see.answer import Seen
from regard.questions.see.picture.whole import paint_seen
from regard.questions.see.sentences import findings
from tests.support.pictures import texts_of


@pytest.mark.parametrize("word", ["bank", None])
def test_pictures(bank, tmp_path: Path, word: str | None) -> None:
    assert Seen(summarise(bank, word), traces=bank).draw(tmp_path / "a.png") == []
    picture = matplotlib.image.imread(tmp_path / "a.png")
    assert picture.shape[0] > 500
    assert picture.shape[1] > 500
    pixels = (picture * 255).round().astype(np.uint32) @ (1 << np.arange(0, 8 * picture.shape[2], 8, dtype=np.uint32))
    assert len(np.unique(pixels)) > 100  # not blank: colours as whole numbers, which sort fast


def test_a_long_text_without_a_word_is_drawn_as_map_draws_it(minilm) -> None:
    trace = minilm.trace("the river bank " + "and the old man at sea " * 30)
    summary = summarise([trace])
    figure, _ = paint_seen(summary, [trace])
    first = highlights(trace).links[0]
    told = "".join(texts_of(figure)).replace(" ", "")
    assert f"Attentionof{len(trace.tokens)}tokens,layer{first.layer},head{first.head}." in told
    assert findings(summary)[0].replace(" ", "") in told


def test_what_is_not_drawn_is_noted(minilm) -> None:
    traces = minilm.trace(["a bank", "the bank", "my bank", "no bank", "one bank"])
    assert paint_seen(summarise(traces[:4], "bank"), traces[:4])[1] == [
        "2 of 4 occurrences, those that end furthest apart, are drawn as sentences"
    ]
    assert paint_seen(summarise(traces), traces)[1] == ["3 of 5 texts are drawn as sentences"]


def test_svg_by_its_ending_and_the_same_each_time_and_its_text_is_text(bank, minilm, tmp_path: Path) -> None:
    summary = summarise(bank, "bank", references=[minilm.trace("money")])
    for name in ("a.svg", "b.SVG"):
        Seen(summary, traces=bank).draw(tmp_path / name)
    first = (tmp_path / "a.svg").read_bytes()
    assert first.startswith(b"<?xml")
    assert first == (tmp_path / "b.SVG").read_bytes()
    found = written(tmp_path / "a.svg")
    for trace in bank:
        assert {token.characters for token in trace.tokens if not token.special} <= set(found)
    assert "layer 0, head 4" in " ".join(found)
    assert first.count(b"serif") >= len(found)  # the last resort of every text's list of fonts


def test_characters_without_a_glyph_are_named(minilm, tmp_path: Path) -> None:
    trace = minilm.trace("a $x_1$ & <b>bank</b> 水")  # neither mathematics nor markup
    notes = Seen(summarise([trace], "bank"), traces=[trace]).draw(tmp_path / "a.png")
    assert notes == [] or "CJK UNIFIED IDEOGRAPH-6C34" in notes[0]
    notes = Seen(summarise([trace], "bank"), traces=[trace]).draw(tmp_path / "a.svg")
    assert {"$", "&", "<", "/", "水"} <= set(written(tmp_path / "a.svg"))
    assert notes == [] or "The SVG uses the fonts" in notes[0]


def written(file: Path) -> list[str]:
    """The texts of an SVG, as whoever opens it reads them."""
    return [element.text or "" for element in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")]
