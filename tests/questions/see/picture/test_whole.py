from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from regard.explain.texts.highlights import highlights
from regard.explain.texts.summary import summarise
from regard.questions.see.answer import Seen
from regard.questions.see.picture.whole import NO_COLUMN, paint_seen
from regard.questions.see.sentences import findings
from tests.support.pictures import drawn_cells, framed, texts_of


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


SOURCE, TARGET = "the man on the river bank", "un homme sur la rive"


@pytest.fixture(scope="module")
def pair(tiny_pair):
    return tiny_pair.trace(SOURCE, target=TARGET)


def test_a_row_that_writes_is_the_one_before(pair) -> None:
    summary = summarise([pair], "bank")
    (found,) = summary.target.alignments
    figure, notes = paint_seen(summary, [pair], shape="column")
    assert notes == [NO_COLUMN]
    weights = np.array(found.weights)
    views = drawn_cells(figure, "large")
    for (axes, cells), layer, rows in zip(
        views, (found.written_layer, found.read_layer), (np.s_[:-1], np.s_[1:]), strict=True
    ):
        given = weights[found.layers.index(layer)][rows]
        np.testing.assert_allclose(cells, given)
        assert [label.get_text() for label in axes.get_yticklabels()] == [t.text for t in pair.decoder.tokens[1:]]
        bank = [token.text for token in pair.encoder.tokens].index("bank")
        assert framed(axes) == [(int(given[:, bank].argmax()), bank)]
    assert f"layer {found.written_layer}, mean of heads" in texts_of(figure)


def test_every_layer_is_small_below(pair) -> None:
    summary = summarise([pair])
    (found,) = summary.target.alignments
    figure, _ = paint_seen(summary, [pair])
    for n, layer in enumerate(found.layers):
        ((_, cells),) = drawn_cells(figure, f"layer {layer}")
        np.testing.assert_allclose(cells, np.array(found.weights[n]))
        roles = [role for role, own in (("written", found.written_layer), ("read", found.read_layer)) if own == layer]
        assert (f"{layer}: {' and '.join(roles)}" if roles else str(layer)) in texts_of(figure)


def test_one_layer_and_head_that_were_asked_for(pair, tmp_path) -> None:
    summary = summarise([pair], layer=1, head=2)
    figure, _ = paint_seen(summary, [pair], layer=1, head=2)
    (_, written), _ = drawn_cells(figure, "large")
    np.testing.assert_allclose(written, pair.decoder.cross[1][2][:-1].double().numpy(), rtol=1e-6)
    assert "layer 1, head 2" in texts_of(figure)
    assert Seen(summary, 1, 2, traces=[pair]).draw(tmp_path / "a.svg") == []
