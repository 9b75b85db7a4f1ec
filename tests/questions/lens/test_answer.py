"""The lens as an answer: at the places and with the numbers that `regard see --next` has."""

import json

import pytest

from regard.errors import RegardError
from regard.questions.lens.answer import lens
from regard.questions.see.answer import seen
from tests.support.own_models import TARGETS, TEXTS, no_checks_of_annotations, opened, pair

__all__ = ["no_checks_of_annotations"]  # the fixture


def test_the_numbers_are_those_of_see(tmp_path) -> None:
    model = opened("gpt")
    traces = [model.trace(text) for text in TEXTS[:2]]
    found, summary = lens(model, traces, top=3), seen(traces, top=3, lens_of=model).summary
    data = json.loads(json.dumps(found.to_json(tmp_path / "lens.json")))
    whole = seen(traces, top=3, lens_of=model).to_json()["logit_lenses"]
    assert (data["format"], data["side"]) == ("regard lens", "text")
    assert data["logit_lenses"] == whole
    rows, layers = found.rows(), len(traces[0].hidden_states)
    assert len(rows) == len(summary.logit_lenses) * layers * 3
    assert {row["text"] for row in rows} == {"1", "2"}
    first = summary.logit_lenses[0].layers[1].candidates[2]
    assert [row["probability"] for row in rows if (row["text"], row["state"], row["place"]) == ("1", 1, 3)] == [
        first.probability
    ]
    assert len(found.findings()) == len(summary.logit_lenses)
    assert "(and 1 more)" in found.title()
    assert str(found).startswith("• After ")
    page = found.page()
    assert [panel["kind"] for panel in page.panels] == ["table", "heat"] * len(summary.logit_lenses)
    assert page.findings == found.findings()
    assert len(found.plot().axes) >= 2


def test_a_decoder_is_read_at_its_target() -> None:
    model = pair()
    trace = model.trace(TEXTS[0], target=TARGETS[0])
    found = lens(model, [trace], "homme")
    assert found.side == "target"
    assert found.panels()[0].title.endswith("in target 1 (logit lens)")
    assert found.rows()[0]["target"] == "1"


def test_a_model_without_a_language_head_is_refused(minilm, bank) -> None:
    with pytest.raises(RegardError, match="has no language head"):
        lens(minilm, bank, "bank")
