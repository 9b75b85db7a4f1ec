from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from regard.display.elements.canvas import places_spread_apart
from regard.explain.texts.highlights import highlights
from regard.explain.texts.summary import summarise
from regard.explain.wording import number
from regard.questions.see.answer import Seen
from regard.questions.see.picture import heads as drawn_large
from regard.questions.see.picture.heads import choices
from regard.questions.see.picture.whole import paint_seen
from tests.support.pictures import axes_with, drawn_weights, framed


@pytest.mark.parametrize("word", ["bank", None])
def test_pictures(bank, tmp_path: Path, word: str | None) -> None:
    assert Seen(summarise(bank, word), traces=bank).draw(tmp_path / "a.png") == []
    picture = matplotlib.image.imread(tmp_path / "a.png")
    assert picture.shape[0] > 500
    assert picture.shape[1] > 500
    pixels = (picture * 255).round().astype(np.uint32) @ (1 << np.arange(0, 8 * picture.shape[2], 8, dtype=np.uint32))
    assert len(np.unique(pixels)) > 100  # not blank: colours as whole numbers, which sort fast


def test_the_head_drawn_is_that_of_the_sentence(bank) -> None:
    summary = summarise(bank, "bank")
    figure, _ = paint_seen(summary, bank)
    for n, (trace, own) in enumerate(zip(bank, summary.occurrences, strict=True)):
        link = own.link
        (axes,) = axes_with(figure, f"Text {n + 1}: attention weights of layer {link.layer}, head {link.head}")
        np.testing.assert_array_equal(drawn_weights(axes), trace.attention[link.layer][link.head].double().numpy())
        assert framed(axes) == [(own.tokens[0], link.token)]
        title = " ".join(axes.get_title().split())
        assert f"“{trace.tokens[link.token].text}” ({number(link.weight)})" in title
        assert len(axes_with(figure, f"in layer {link.layer}, by head")) >= 1
    for n in range(6):
        assert len(axes_with(figure, f"layer {n}")) >= 2


def test_the_head_that_is_asked_for_is_drawn(bank) -> None:
    figure, _ = paint_seen(summarise(bank, "bank", layer=3, head=5), bank, layer=3, head=5)
    first, second = axes_with(figure, "attention weights of layer 3, head 5")
    np.testing.assert_array_equal(drawn_weights(first), bank[0].attention[3][5].double().numpy())
    assert "distinctive" not in first.get_title() + second.get_title()
    (chosen,) = choices(summarise(bank[:1], "bank"), bank[:1], 3, None)
    assert chosen.layer == 3
    assert chosen.head == chosen.best[0].head


def test_without_a_word_the_head_of_the_most_distinctive_link_and_all_heads(bank) -> None:
    figure, _ = paint_seen(summarise(bank), bank)
    for n, trace in enumerate(bank):
        first = highlights(trace).links[0]
        (axes,) = axes_with(figure, f"Text {n + 1}: attention weights of layer {first.layer}, head {first.head}")
        np.testing.assert_array_equal(drawn_weights(axes), trace.attention[first.layer][first.head].double().numpy())
        assert framed(axes) == [(first.query, first.key)]
        assert f"{first.weight:.2f}" in axes.get_title()
    assert len(axes_with(figure, "all heads (frame")) == 2


def test_one_token_has_nothing_to_choose_by(minilm) -> None:
    trace = minilm.trace("bank")
    (axes,) = axes_with(paint_seen(summarise([trace], "bank"), [trace])[0], "attention weights")
    assert axes.get_title() == "Text 1: attention weights of layer 0, mean of heads"
    np.testing.assert_array_equal(drawn_weights(axes), trace.attention[0].dense().mean(0).double().numpy())


def test_a_word_in_a_long_text_has_arcs_to_what_it_looks_at(minilm) -> None:
    trace = minilm.trace("the river bank " + "and the old man at sea " * 12)
    figure, _ = paint_seen(summarise([trace], "bank"), [trace])
    (axes,) = [
        axes for axes in axes_with(figure, "Attention from “bank” in layer") if "by head" not in axes.get_title()
    ]
    (chosen,) = choices(summarise([trace], "bank"), [trace], None, None)
    (word,) = trace.word("bank")
    given = trace.attention[chosen.layer][:, word.tokens[0]].amax(0)
    apart = [n for n, token in enumerate(trace.tokens) if token.special or n in word.tokens]
    given[apart] = 0
    expected = set(given.sort(descending=True, stable=True).indices[:14].tolist())
    assert max(map(len, axes.get_title().splitlines())) <= 86  # or its ends are cut off
    arcs = {line.get_gid() for line in axes.lines if line.get_gid()}
    assert arcs == {f"arc {word.tokens[0]} {n}" for n in expected}


def test_a_long_text_without_a_word_is_drawn_as_map_draws_it(minilm) -> None:
    trace = minilm.trace("the river bank " + "and the old man at sea " * 12)
    figure, _ = paint_seen(summarise([trace]), [trace])
    first = highlights(trace).links[0]
    title = figure.subfigs[0].get_suptitle()
    assert title.startswith(
        f"Text 1: Attention of {len(trace.tokens)} tokens, layer {first.layer}, head {first.head}\n“"
    )
    assert len(axes_with(figure, "Mean weight by distance")) == 1


def test_more_occurrences_than_are_drawn_are_noted(minilm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_large, "OCCURRENCES", 1)  # of 8 the picture takes seconds
    trace = minilm.trace("bank bank")
    notes = Seen(summarise([trace], "bank"), traces=[trace]).draw(tmp_path / "a.png")
    assert notes == ["text 1: the first 1 of 2 occurrences are drawn large"]


def test_svg_by_its_ending_and_the_same_each_time_and_its_text_is_text(bank, minilm, tmp_path: Path) -> None:
    summary = summarise(bank, "bank", references=[minilm.trace("money")])
    for name in ("a.svg", "b.SVG"):
        Seen(summary, traces=bank).draw(tmp_path / name)
    first = (tmp_path / "a.svg").read_bytes()
    assert first.startswith(b"<?xml")
    assert first == (tmp_path / "b.SVG").read_bytes()
    found = written(tmp_path / "a.svg")
    for trace in bank:
        assert {token.text for token in trace.tokens} <= set(found)
    assert any(text.startswith("Text 1: attention weights of layer 0, head 4") for text in found)
    assert first.count(b"sans-serif") >= len(found)  # the last resort of every text's list of fonts


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


def test_labels_keep_apart() -> None:
    places = [0, 1, 2, 50, 51, 97, 98, 99]
    found = places_spread_apart(places, 4.0, 99.5)
    assert all(b - a > 3.999 for a, b in pairwise(found))
    assert max(found) <= 99.5
    assert found[0] == 0
    assert found[3] == 50
    assert places_spread_apart([3, 9], 4.0, 20.0) == [3, 9]
    assert places_spread_apart(list(range(10)), 4.0, 9.0) == pytest.approx(range(10))  # more than there is room for
