"""A long text's matrix as an answer: its rows, its JSON, its page, and a token in the text around it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.colors import to_hex

import regard
from regard.display.canvas import TEXTS
from regard.display.panels import Curves, InContext
from regard.questions.map.answer import Matrix, TokenInText
from regard.questions.map.picture import paint_map
from regard.questions.map.whole import chosen_layer, matrix
from tests.support import RIVER
from tests.support.pictures import artists
from tests.support.terminal import printed_parts


def test_rows_are_the_far_pairs_with_their_weights(bank) -> None:
    found = matrix(bank[0], 2, far=3, top=7)
    dense = bank[0].attention[2].dense()
    assert len(found.rows()) == 7
    for row in found.rows():
        assert row["weight"] == pytest.approx(float(dense[row["head"], row["query"], row["key"]]), rel=1e-5)
        assert row["distance"] == abs(row["query"] - row["key"]) > 3
        assert row["query_text"] == bank[0].tokens[row["query"]].text
    assert found.to_frame()["weight"].tolist() == [row["weight"] for row in found.rows()]


def test_json_has_all_of_it_and_the_text(bank, tmp_path: Path) -> None:
    found = matrix(bank[0], 1, 5)
    found.to_json(tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert (data["format"], data["layer"], data["head"]) == ("regard map", 1, 5)
    assert data["texts"] == [RIVER]
    assert data["findings"] == found.findings()
    assert data["picture"] == found.picture
    assert data["receivers"][0]["received"] == found.receivers[0].received
    assert {"traces", "why", "about"}.isdisjoint(data)


def test_the_page_opens_at_the_layer_and_has_the_tables(bank) -> None:
    found = matrix(bank[0], 2, far=2)
    page = found.page()
    assert (page.opening["view"], page.opening["head"]) == ("map", found.pairs[0].head)
    assert found.main_pair is not None
    assert page.opening["key"] == found.main_pair.key.token
    assert [panel["name"] for panel in page.panels] == [panel.name for panel in found.panels()]
    assert [call["layer"] for call in page.calls] == [2]
    short = matrix(
        bank[0], 2, far=64
    )  # no pair is that distant: it opens at the token that attends most to the top receiver
    column = bank[0].attention[2].dense().mean(0)[:, short.receivers[1].place.token]
    column[[0, short.receivers[1].place.token, -1]] = 0
    assert short.page().opening["token"] == int(column.argmax())


def test_a_short_text_opens_at_the_link_that_see_names(minilm) -> None:
    trace = minilm.trace("The animal didn't cross the street because it was too tired.")
    (first, *_) = regard.see(trace).summary.highlights[0].links
    layer, link, why = chosen_layer(trace, None, None, None)
    found = matrix(trace, layer, link=link)
    assert (layer, found.link) == (first.layer, first)
    assert regard.see(trace).findings()[0].startswith(found.findings()[0].removesuffix("."))
    assert "most distinctive link" in why
    opening = found.page().opening
    assert [opening[name] for name in ("head", "token", "key")] == [first.head, first.query, first.key]
    assert f"arc {first.query} {first.key}" in artists(paint_map(found))
    assert matrix(trace, layer, far=2).link is None
    links = {head: matrix(trace, layer, head).link for head in (first.head, first.head + 1)}
    assert links == {first.head: first, first.head + 1: None}  # no distinctive link in the other head


def test_the_link_is_that_of_all_layers_unless_a_layer_is_requested(minilm, tmp_path: Path) -> None:
    trace = minilm.trace("Why did the chicken cross the road? To get to the other side!")
    (first, *_) = regard.see(trace).summary.highlights[0].links
    layer, link, _ = chosen_layer(trace, None, None, None)
    assert link == first
    assert matrix(trace, layer, link=link).opening()["token"] == first.query
    alone = matrix(trace, layer).link  # of this layer alone
    assert alone is not None
    assert alone != first
    trace.save(tmp_path / "one.safetensors", layers=[layer])
    assert chosen_layer(regard.open(tmp_path / "one.safetensors"), None, None, None) == (layer, alone, "")


def test_the_plot_draws_the_link_of_the_title_once(minilm) -> None:
    found = matrix(minilm.trace("The animal didn't cross the street because it was too tired."), 1, top=100)
    pair = next(pair for pair in found.pairs if pair.distance > 3)
    ends = pair.query.token, pair.key.token
    link = replace(found.link, head=pair.head, query=ends[0], key=ends[1], weight=pair.weight)
    arcs = paint_map(replace(found, link=link)).findobj(lambda artist: str(artist.get_gid()).startswith("arc"))
    assert len(arcs) == len(found.pairs)
    assert [arc.get_gid() for arc in arcs if to_hex(arc.get_facecolor()) == TEXTS[1]] == [f"arc {ends[0]} {ends[1]}"]


def test_a_token_in_its_text() -> None:
    text = "one two\n\nbank three four five six seven"
    assert TokenInText(2, "bank", 9, 13, text).in_text() == InContext("one two ", "bank", " three four five six seven")
    assert TokenInText(0, "one", 0, 3, text).in_text().left == ""
    assert TokenInText(9, "[SEP]", 39, 39, text).in_text() == InContext("", "[SEP]", "")


TEXT = "The old man went to the river bank, and fished there for many days; the bank of the town was closed.\n" * 12


@pytest.mark.parametrize("width", [60, 80, 140])
def test_one_screen(minilm, width: int) -> None:
    found = matrix(minilm.trace(TEXT, layers=[2]), 2)
    out = printed_parts(found.shown(width), width)
    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    told = " ".join(out.split())
    place = told.index(found.panels()[0].title)
    for sentence in found.findings():
        place = told.index(sentence, place)
    assert f"A full bar is {found.panels()[0].full:.2f}" in told


def test_all_of_it_names_every_head_pair_and_receiver(minilm) -> None:
    found = matrix(minilm.trace(TEXT, layers=[2]), 2, top=4)
    told = printed_parts(found.shown(140, 1000, everything=True), 140)
    assert all(panel.title in told for panel in found.panels())
    for each in found.heads:
        assert f" {each.distance:.2f} " in told
    for pair in found.pairs:
        assert f"{pair.weight:.2f}" in told


def test_a_special_token_that_takes_most_is_told_and_not_drawn(minilm) -> None:
    found = matrix(minilm.trace(TEXT, layers=[2]), 2)
    (along,) = (panel for panel in found.panels() if panel.name == "Along the text")
    assert isinstance(along, Curves)
    first = found.receivers[0]
    assert (first.place.text, first.place.token) == ("[CLS]", 0)
    assert along.caption.endswith(f": [CLS] {first.received:.2f}.")
    received = column_sums(found)
    drawn, count = along.series[0].y, len(found.received)
    for part, value in enumerate(drawn):
        own = [received[n] for n in range(1, found.tokens) if ((n + 1) * count - 1) // found.tokens == part]
        assert value == (pytest.approx(sum(own) / len(own), abs=1e-4) if own else None)


def column_sums(found: Matrix) -> list[float]:
    """What each token receives, mean of heads."""
    (trace,) = found.traces
    return trace.attention[found.layer].dense().mean(0).sum(0).tolist()


def test_words_of_several_tokens_stand_in_the_text_as_it_has_them(minilm) -> None:
    found = matrix(minilm.trace("An unfathomable Manhattoesque river. " * 12, layers=[2]), 2)
    places = [place.in_text() for pair in found.pairs for place in (pair.query, pair.key)]
    assert any(pair.query.text.startswith("##") for pair in found.pairs)
    assert all(
        "".join((each.left, each.form, each.right)).strip() in "An unfathomable Manhattoesque river. " * 12
        for each in places
    )


def test_without_far_pairs_it_is_who_receives_most(minilm) -> None:
    found = matrix(minilm.trace(RIVER), 2, far=64)
    assert "Tokens that receive most attention" in str(found)
    assert not any(panel.name == "Far pairs" for panel in found.panels())
