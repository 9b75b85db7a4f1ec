"""The lens as an answer: at the places and with the numbers that `regard see --logit-lens` has."""

import json
from dataclasses import replace

import numpy as np
import pytest

import regard
from regard.display.panels import Heat, Table
from regard.errors import RegardError
from regard.explain.logits import Candidate, Layer, LogitLens
from regard.explain.texts.summary import summarise
from regard.explain.wording import fixed, state_name
from regard.questions.lens import Lens, lens
from regard.questions.see.answer import seen
from regard.questions.see.picture.whole import paint_seen
from regard.text.quoting import spelled
from regard.text.tokens import Token
from tests.said.reading import names_in, numbers_in, plain_and_few, shown_with_its_numbers
from tests.support import in_text, make_tiny
from tests.support.own_models import TARGETS, TEXTS, opened, pair
from tests.support.pictures import axes_with
from tests.support.summaries import bare_summary

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


@pytest.fixture(scope="module")
def writer(tmp_path_factory, minilm):
    import transformers

    folder = tmp_path_factory.mktemp("writer")
    make_tiny(folder, minilm, "llama")
    config = transformers.AutoConfig.from_pretrained(folder)
    transformers.AutoModelForCausalLM.from_config(config).eval().save_pretrained(folder)
    return regard.load(folder)


def test_bars_and_lens(writer) -> None:
    trace = writer.trace("a man on a river bank")
    summary = summarise([trace], "man", top=4, lens_of=writer)
    figure, _ = paint_seen(summary, [trace])
    bars = axes_with(figure, ": likeliest tokens")
    assert len(bars) == 1 < len(summary.predictions)  # nothing comes after the end token
    for axes, prediction in zip(bars, summary.predictions[:1], strict=True):
        assert [bar.get_width() for bar in axes.patches] == [each.probability for each in prediction.candidates]
        assert [label.get_text() for label in axes.get_yticklabels()] == [
            spelled(each.text, 16) for each in prediction.candidates
        ]
    lenses = axes_with(figure, ": predictions of each layer")
    assert len(lenses) == len(summary.logit_lenses) >= 1
    for axes, own in zip(lenses, summary.logit_lenses, strict=True):
        expected = [[each.probability for each in layer.candidates] for layer in own.layers]
        np.testing.assert_array_equal(axes.images[0].get_array(), expected)
        assert axes.get_ylim()[0] < axes.get_ylim()[1]  # the last state is on top
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert names == [state_name(n) for n in range(3)] == ["enters layer 0", "after layer 0", "after layer 1"]
        assert [text.get_text() for text in axes.texts] == [
            spelled(each.text, 10) for layer in own.layers for each in layer.candidates
        ]
        bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
        found = [each for layer in own.layers for each in layer.candidates if each.id == own.final.id]
        assert bold == [spelled(each.text, 10) for each in found]
        assert "darker is more likely" in axes.get_title("left")


def test_every_place_has_its_table_and_its_cells(writer) -> None:
    found = lens(writer, [writer.trace("a man on a river bank")], "man", top=4)
    panels = found.panels()
    assert len({panel.name for panel in panels}) == len(panels) == 2 * len(found.summary.logit_lenses)
    table, cells = panels[:2]
    assert isinstance(table, Table)
    assert isinstance(cells, Heat)
    first = found.summary.logit_lenses[0]
    assert [row[2] for row in table.rows] == [str(layer.rank) for layer in first.layers]
    assert "“man” in text 1" in table.title
    assert cells.said is not None
    assert cells.said[0][0].endswith(fixed(first.layers[0].candidates[0].probability, 3))
