"""The panels of one attention score: every pair is the split's, sums are those of rows and columns."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import regard
from regard.questions.why import score as sources
from regard.questions.why.score import GROUPS, short_score_part_name
from regard.web.assemble import Choice
from regard.web.html_file import page_beside, script_json

TEXT = "He sat on a river bank, fishing."


@pytest.fixture(scope="module")
def trace(minilm: Any) -> Any:
    return minilm.trace(TEXT)


@pytest.fixture(scope="module")
def found(minilm: Any, trace: Any) -> Any:
    return regard.score_sources(minilm, trace, "bank", "river", layer=2, head=3)


def test_pairs_are_grids_with_the_sums_of_both_sides(found: Any) -> None:
    page: Any = found.page().data()
    script_json(page)
    assert page["title"] == "Why “bank” attends to “river” in layer 2, head 3 (weight 0.01)"
    assert page["findings"] == found.findings()
    beside = found.beside_the_others()
    for panel, (by, name) in zip(page["panels"], GROUPS, strict=False):
        queries, keys, scores = beside.table(by)
        assert panel["name"] == name
        assert panel["rows"] == [short_score_part_name(each) for each in queries]
        assert panel["columns"] == [short_score_part_name(each) for each in keys]
        np.testing.assert_array_equal(panel["values"], scores.numpy())
        np.testing.assert_array_equal(panel["sums"]["rows"], scores.sum(1).numpy())
        np.testing.assert_array_equal(panel["sums"]["columns"], scores.sum(0).numpy())
        assert panel["sums"]["all"] == pytest.approx(found.score - found.mean, abs=1e-4)
        assert f"the mean of {found.seen} keys" in panel["axes"][1]
        assert dict(beside.side("query", by)) == pytest.approx(dict(zip(queries, panel["sums"]["rows"], strict=True)))
    pairs, every = page["panels"][4]["rows"], page["panels"][4]["total"]
    assert [row[:3] for row in pairs[:20]] == [[p.query, p.key, p.score] for p in beside.top(20)]
    queries, keys, scores = found.table()
    for query, key, _, score in pairs:
        assert score == float(scores[queries.index(query), keys.index(key)])
    queries, keys, _ = beside.table()
    assert every == [f"all {len(queries) * len(keys):,} pairs", "", beside.score, found.score]
    assert {panel["tab"] for panel in page["panels"]} == {"The score"}


def test_where_nothing_was_read_from_a_token_no_grid_is_by_source_token(minilm: Any, trace: Any) -> None:
    first = regard.score_sources(
        minilm, trace, "bank", "river", layer=0, head=3
    )  # where nothing was read from a token yet
    shown: Any = first.page().panels
    assert [panel["name"] for panel in shown] == ["By layer", "By writer", "By kind", "Largest pairs"]


def test_source_tokens_are_named_as_on_other_pages() -> None:
    assert short_score_part_name("attention from “river” (6)") == "river 6"
    assert short_score_part_name("attention from “a (b)” (6)") == "a (b) 6"
    for other in ("layer 3, head 2", "cross-attention from “a” (1) of the decoder", "feed-forward layers"):
        assert short_score_part_name(other) == other


def test_of_many_parts_the_others_are_one(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_GRID_PARTS", 6)
    found = replace(found)  # without the panels that were listed before
    whole = found.beside_the_others().score
    for panel in found.page().panels[:4]:
        values: Any = panel["values"]
        assert max(len(values), len(values[0])) <= 6
        assert np.sum(values) == pytest.approx(whole, abs=1e-4)
    writers: Any = found.page().panels[2]
    assert writers["rows"][-1].endswith(" others together")


def test_a_token_that_may_look_at_one_alone_has_its_score(found: Any) -> None:
    alone = replace(found, seen=1, mean=found.score, other_keys=found.key_parts)
    panel: Any = alone.page().panels[1]
    assert panel["sums"]["all"] == pytest.approx(found.score, abs=1e-4)
    assert panel["axes"][1] == "components of “river” (key)"
    assert f"{sources.signed(found.score)}, the score." in panel["note"]


def test_with_the_attention_of_its_text_the_page_opens_at_the_score(found: Any, trace: Any) -> None:
    page: Any = page_beside(found, [trace], Choice()).data()
    assert page["opening"]["view"] == "panel 0"
    assert [panel["name"] for panel in page["panels"]][:2] == ["By source token", "By layer"]
    assert page["findings"] == found.findings()
    assert len(page["calls"]) == 6
