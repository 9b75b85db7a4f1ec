"""Every step of a word's way through one head is kept as it was computed."""

import math

import pytest

from regard.display.panels import Panel
from regard.errors import RegardError
from regard.explain.weights.head_steps import head_steps
from regard.questions.steps.answer import Steps, steps


@pytest.fixture(scope="module")
def found(bank) -> Steps:
    return steps(bank[0], "bank", 3, -7)


def test_the_numbers_are_the_records(bank, found: Steps) -> None:
    assert (found.layer, found.head) == (3, 5)
    ((token, record),) = found.found
    assert token == bank[0].word("bank")[0].tokens[0]
    expected = head_steps(bank[0], token, 3, 5)
    rows = found.rows()
    assert [row["weight"] for row in rows] == expected.weights.tolist() == record.weights.tolist()
    assert [row["score"] for row in rows] == expected.scores.tolist()
    assert [row["text"] for row in rows] == [each.text for each in bank[0].tokens]
    assert math.fsum(float(str(row["of_context"])) for row in rows) == pytest.approx(1)


def test_json_has_every_vector(found: Steps) -> None:
    ((token, record),) = found.found
    data = found.to_json()
    assert data["format"] == "regard steps"
    (query,) = data["queries"]  # type: ignore[misc, attr-defined]
    assert query["token"] == token
    for name in ("query", "key", "value", "scores", "weights", "weighted", "context"):
        assert query[name] == getattr(record, name).tolist()
    assert (query["scale"], query["softcap"], query["error"]) == (record.scale, None, record.error)


def test_a_score_is_null_where_the_query_may_not_look(bank, found: Steps) -> None:
    from dataclasses import replace

    ((token, record),) = found.found
    scores = record.scores.clone()
    scores[2] = -math.inf
    hidden = replace(found, found=[(token, replace(record, scores=scores))])
    assert hidden.rows()[2]["score"] is None
    assert hidden.to_json()["queries"][0]["scores"][2] is None  # type: ignore[index]


def test_the_page_opens_at_these_steps(found: Steps) -> None:
    page = found.page()
    assert page.opening == {"view": "steps", "call": 3, "head": 5, "token": found.found[0][0]}
    assert [each["call"] for each in page.steps] == [3]
    assert page.findings == found.findings()
    assert page.panels == []  # its Steps has all of it
    assert set(found.exactness()) <= set(page.status)


def test_a_panel_is_drawn_by_its_name(found: Steps) -> None:
    names = [panel.name for panel in found.panels() if isinstance(panel, Panel)]
    assert names == ["Weights", "Every number", "Query", "Weighted values"]
    assert found.plot("Query").axes
    with pytest.raises(RegardError, match="plot: given 'No'"):
        found.plot("No")


def test_what_is_not_there_is_refused(bank) -> None:
    with pytest.raises(RegardError, match="layer"):
        steps(bank[0], "bank", 6)
    with pytest.raises(RegardError, match="head"):
        steps(bank[0], "bank", 0, 12)
    with pytest.raises(RegardError, match="'bunk'"):
        steps(bank[0], "bunk")
