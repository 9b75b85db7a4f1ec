"""A long text's matrix as an answer: its rows, its JSON, its page, and a token in the text around it."""

import json
from pathlib import Path

import pytest

from regard.display.panels import InContext
from regard.questions.map.answer import TokenInText
from regard.questions.map.whole import matrix
from tests.support import RIVER


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
    found = matrix(bank[0], 2, 3)
    page = found.page()
    assert page.opening["view"] == "map"
    assert [panel["name"] for panel in page.panels] == [panel.name for panel in found.panels()]
    assert [call["layer"] for call in page.calls] == [2]


def test_a_token_in_its_text() -> None:
    text = "one two\n\nbank three four five six seven"
    assert TokenInText(2, "bank", 9, 13, text).in_text() == InContext("one two ", "bank", " three four five six seven")
    assert TokenInText(0, "one", 0, 3, text).in_text().left == ""
    assert TokenInText(9, "[SEP]", 39, 39, text).in_text() == InContext("", "[SEP]", "")
