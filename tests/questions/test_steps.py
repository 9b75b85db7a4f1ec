"""Every step of a word's way through one head is kept as it was computed."""

import math
import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.display.panels import Heat, Panel, Table
from regard.display.terminal_parts import plain_lines_of_parts
from regard.errors import RegardError
from regard.explain.weights.head_steps import head_steps
from regard.questions.steps import DRAWN, KEYS, Steps, steps
from tests.said.reading import names_in, numbers_in, shown_with_its_numbers, shows

LONG = "he went to the river bank to fish and " * 5


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
    with pytest.raises(RegardError, match="plot: got 'No'"):
        found.plot("No")


def test_what_is_not_there_is_refused(bank) -> None:
    with pytest.raises(RegardError, match="layer"):
        steps(bank[0], "bank", 6)
    with pytest.raises(RegardError, match="head"):
        steps(bank[0], "bank", 0, 12)
    with pytest.raises(RegardError, match="'bunk'"):
        steps(bank[0], "bunk")


def table(found: Steps, name: str) -> Table:
    (panel,) = found.chosen([name])
    assert isinstance(panel, Table)
    return panel


def heat(found: Steps, name: str) -> Heat:
    (panel,) = found.chosen([name])
    assert isinstance(panel, Heat)
    return panel


def changed(found: Steps, **entries: Any) -> Steps:
    """An answer with other numbers of its first token's record."""
    (query, record), *rest = found.found
    return replace(found, found=[(query, replace(record, **entries)), *rest])


def test_a_score_is_no_fraction(minilm) -> None:
    found = steps(minilm.trace("on a river bank"), "bank", 1, 2)
    count = len(found.tokens)
    scores = torch.tensor([10.934, 0.997, -0.004, 20.5, *[-0.5] * (count - 4)], dtype=torch.float64)
    found = changed(found, products=scores, scores=scores)
    shown = "\n".join(plain_lines_of_parts(found.shown(100), 100))
    for name, score in (("[CLS]", "10.93"), ("on", "1.00"), ("a", "0.00"), ("river", "20.50"), ("bank", "−0.50")):
        assert re.search(rf"{re.escape(name)}( \(sink\))? +{score} +{score} ", shown), shown


@pytest.mark.parametrize("width", [60, 80, 140])
def test_one_screen(minilm, width: int) -> None:
    found = steps(minilm.trace(LONG), "bank", 1, 2)
    lines = plain_lines_of_parts(found.shown(width), width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    assert "“bank”" in lines[0]
    assert sum(line.split()[0].isdecimal() for line in lines if line.strip()) == KEYS + 1  # and the others together
    assert f"{float(found.found[-1][1].weights.max()):.2f}" in " ".join(lines)


def test_sentences_name_the_most_attended_tokens_and_how_the_weight_comes_about(bank) -> None:
    for layer, head in ((0, 4), (1, 2), (3, 5), (5, 11)):
        found = steps(bank[0], "bank", layer, head)
        shown_with_its_numbers(found, also=[layer, head, len(found.found[0][1].query)])
        ((query, record),) = found.found
        attends, weight, part = found.findings()
        texts = [token.text for token in found.tokens]
        others = [
            n for n, token in enumerate(found.tokens) if n != query and not token.special and token.text.isalpha()
        ]
        other = max(others, key=lambda n: float(record.weights[n]))
        top = int(record.weights.argmax())
        assert ("itself" if top == query else texts[top]) in attends
        shows(numbers_in(attends)[2], float(record.weights[top]))
        assert texts[other] in names_in(attends)
        assert names_in(weight) == [texts[other]]
        for printed, value in zip((0, -2, -1), (record.products, record.scores, record.weights), strict=True):
            shows(numbers_in(weight)[printed], float(value[other]))
        shares = [float(str(row["of_context"])) for row in found.rows()]
        shows(numbers_in(part)[0], max(shares))
        assert texts[shares.index(max(shares))] in part


def test_only_one_token_may_be_attended_to(minilm) -> None:
    found = steps(minilm.trace("a river bank"), "bank")
    ((query, record),) = found.found
    scores = torch.full_like(record.scores, -float("inf"))
    scores[query] = 1.0
    weights = torch.zeros_like(record.weights)
    weights[query] = 1.0
    first, *_ = changed(found, scores=scores, weights=weights).findings()
    assert names_in(first) == ["bank"]


def test_the_first_table_has_the_largest_weights_and_sums_up_the_others(minilm) -> None:
    found = steps(minilm.trace(LONG), "bank", 1, 2)
    _, record = found.found[-1]  # which alone it shows
    shown = table(found, "Weights")
    *rows, rest = shown.rows
    best = record.weights.sort(descending=True, stable=True).indices[:KEYS].sort().values
    assert [int(str(row[0]).split()[0]) for row in rows] == best.tolist()
    assert [row[1:5] for row in rows] == [
        [float(each[n]) for each in (record.products, record.scores, record.exponentials, record.weights)] for n in best
    ]
    assert rest[0] == f"{len(found.tokens) - KEYS} more tokens"
    assert rest[4] == pytest.approx(1 - float(record.weights[best].sum()))
    for column, whole in ((3, record.total), (4, 1.0), (5, 1.0)):
        assert shown.total is not None
        assert shown.total[column] == pytest.approx(whole)
        assert math.fsum(float(str(row[column])) for row in shown.rows) == pytest.approx(whole)


def test_what_it_may_not_look_at_is_left_out(minilm) -> None:
    found = steps(minilm.trace("a river bank"), "bank")
    ((_, record),) = found.found
    scores = record.scores.clone()
    scores[4] = -float("inf")
    found = changed(found, scores=scores)
    shown = table(found, "Weights")
    assert "1 token masked" in shown.note
    assert len(shown.rows) == 4
    every = table(found, "Every number").rows
    assert every[4][0] == "4 [SEP] (masked)"
    assert every[4][-3:] == [None, None, None] != every[3][-3:]


def test_every_number_of_every_token_is_there(minilm) -> None:
    found = steps(minilm.trace("a bank by a bank"), "bank", 2, 3)
    for query, record in found.found:
        rows = table(found, f"Every number, token {query}").rows
        assert [row[1:] for row in rows] == [
            [float(each[n]) for each in (record.products, record.scaled, record.exponentials, record.weights)]
            + [pytest.approx(float(record.weighted[n] @ record.context / (record.context @ record.context)))]
            for n in range(len(found.tokens))
        ]
        assert heat(found, f"Query, token {query}").values == [record.query.tolist()]
        weighted = torch.tensor(heat(found, f"Weighted values, token {query}").values).double()
        assert weighted[:-1].sum(0).tolist() == pytest.approx(weighted[-1].tolist(), abs=1e-6)
    everything = plain_lines_of_parts(found.shown(100, everything=True), 100)
    assert sum(line.endswith("step by step") for line in everything) == 2


def test_of_many_keys_the_vectors_with_the_largest_weights_are_shown(minilm) -> None:
    found = steps(minilm.trace(LONG), "bank", 1, 2)
    query = found.found[0][0]
    shown = heat(found, f"Weighted values, token {query}")
    assert len(shown.rows) == DRAWN + 1
    assert f"of all {len(found.tokens)} keys' rows; the {DRAWN} with the largest weights are shown" in shown.note


def test_a_softcap_a_bias_and_a_sink_are_columns_and_rows(minilm) -> None:
    found = steps(minilm.trace("a river bank"), "bank")
    ((_, record),) = found.found
    found = changed(
        found, softcap=30.0, bias=torch.ones_like(record.bias), sink=-1.5, weights=record.weights / 2, scale=0.3
    )
    every = table(found, "Every number")
    assert [column.name for column in every.columns] == [
        "key", "q · k", "× scale", "capped at 30", "+ bias", "exp(score − max)", "weight", "contribution"
    ]  # fmt: skip
    assert "0.3;" in every.note
    assert "learned sink" in every.note
    last = table(found, "Weights").rows[-1]
    assert (last[0], last[2], last[4]) == ("learned sink", -1.5, pytest.approx(0.5))
