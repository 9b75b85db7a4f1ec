"""The lens as an answer: at the places and with the numbers that `regard see --logit-lens` has."""

import json
from dataclasses import replace

import pytest

from regard.errors import RegardError
from regard.explain.logits.logit_lens import Layer, LogitLens
from regard.explain.logits.predictions import Candidate
from regard.questions.lens.answer import Lens, lens
from regard.questions.see.answer import seen
from regard.text.tokens import Token
from tests.said.reading import names_in, numbers_in, plain_and_few, shown_with_its_numbers
from tests.support import in_text
from tests.support.own_models import TARGETS, TEXTS, no_checks_of_annotations, opened, pair
from tests.support.summaries import bare_summary

__all__ = ["no_checks_of_annotations"]  # the fixture
TOKENS = in_text([Token(0, "the", 0, 3, None, False), Token(1, "bank", 4, 8, None, False)])


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
    assert len(found.findings()) == min(3, len(summary.logit_lenses))
    shown_with_its_numbers(found)
    assert "(and 1 more)" in found.title()
    assert "• After " in str(found)
    page = found.page()
    assert [panel["kind"] for panel in page.panels] == ["table", "heat"] * len(summary.logit_lenses)
    assert page.findings == found.findings()
    assert len(found.plot().axes) >= 2


def test_a_decoder_is_read_at_its_target() -> None:
    model = pair()
    trace = model.trace(TEXTS[0], target=TARGETS[0])
    found = lens(model, [trace], "homme")
    assert found.side == "target"
    assert "in target 1" in found.panels()[0].title
    assert found.rows()[0]["target"] == "1"


def test_a_model_without_a_language_head_is_refused(minilm, bank) -> None:
    with pytest.raises(RegardError, match="has no language-model head"):
        lens(minilm, bank, "bank")


def said(*ranks: int, after: bool = True, texts: int = 1) -> str:
    layers = [Layer(n, [Candidate(7, "of", 0.5)], rank, 0.5) for n, rank in enumerate(ranks)]
    one = LogitLens(0, 1, "bank", after, None, Candidate(7, " of", 0.31), layers, 0.0)
    summary = replace(
        bare_summary("bank", [], None, [], 0), logit_lenses=[one], tokens=[TOKENS], texts=["the bank"] * texts,
        labels=["1", "2"],
    )  # fmt: skip
    (sentence,) = Lens(summary).findings()
    return sentence


def test_from_where_on_it_is_the_likeliest() -> None:
    for ranks, numbers in (
        ((1, 1, 1), ["0.31"]),
        ((1216, 1, 1), ["0.31", "0"]),
        ((1, 5, 1), ["0.31", "1"]),
        ((9, 1, 1202), ["0.31", "1,202"]),
    ):
        sentence = said(*ranks)
        assert names_in(sentence) == ["bank", "of"]
        assert numbers_in(sentence) == numbers
        plain_and_few([sentence])


def test_masked_models_and_several_texts() -> None:
    assert said(1, after=False, texts=2).startswith("In place of “bank” in text 1")
