"""The panel of a word's paths held against what the library computes: cosines, shares, and what is said."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.explain.causes.layer_updates import layer_updates
from regard.explain.texts.summary import Summary, summarise
from regard.explain.vectors.neutral import MASSIVE, Massive
from regard.questions.movement import missing, movement_panels, notes_on_movement
from regard.questions.see.answer import see
from regard.trace.trace import Trace
from regard.views.save_page import page_as_seen
from regard.web.assemble import Opening, page_of
from regard.web.html_file import script_json
from tests.support.own_models import TARGETS, TEXTS, opened, pair


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    model = opened("gpt")
    return [model.trace(text) for text in ("A man is fishing on a bank .", "She takes a bank , a bank .")]


@pytest.fixture(scope="module")
def seen(traces: list[Trace]) -> Summary:
    model = opened("gpt")
    return summarise(traces, "bank", references=[model.trace("river"), model.trace("money")])


def test_every_occurrence_has_its_path(seen: Summary) -> None:
    (panel,) = movement_panels(seen)
    assert [path["label"] for path in panel["paths"]] == ["1", "2a", "2b"]
    assert [path["of"] for path in panel["paths"]] == ["text 1", "text 2", "text 2"]
    assert panel["states"] == ["enters layer 0", "leaves layer 0", "leaves layer 1: the contextual embedding"]
    assert (panel["compared"], panel["sentences"]) == (True, [])
    script_json({"panels": [panel]})


def test_cosines_are_those_of_the_states(traces: list[Trace], seen: Summary) -> None:
    (panel,) = movement_panels(seen)
    states = []
    for each in seen.occurrences:
        trace = traces[each.text]
        own = [*trace.hidden_states[:-1], trace.last_hidden_state]
        states.append(torch.stack([state[each.tokens].double().mean(0) for state in own]))
    for n, path in enumerate(panel["paths"]):
        before = torch.cosine_similarity(states[n][1:], states[n][:-1], dim=1)
        assert path["before"][0] is None
        assert torch.allclose(torch.tensor(path["before"][1:]).double(), before, atol=1e-5)
        for other in range(n):
            alike = torch.cosine_similarity(states[n], states[other], dim=1)
            assert torch.allclose(torch.tensor(panel["between"][n][other]).double(), alike, atol=1e-5)
    for reference in seen.references:
        at = [o.label for o in seen.occurrences].index(reference.occurrence)
        curve = next(curve for curve in panel["curves"] if curve["label"] == reference.word)
        assert torch.allclose(torch.tensor(curve["paths"][at]), torch.tensor(reference.states), atol=1e-6)
        assert curve["neutral"] is None
        assert abs(curve["paths"][at][-1] - reference.last_hidden_state) < 1e-6


def test_neutral_sentences_are_on_the_curves(minilm: Any, bank: list[Trace]) -> None:
    control = minilm.trace([f"{begin} the bank{end}" for begin in ("They saw", "We spoke of", "It was", "I know")
                            for end in (".", " today.", ", he said.")], logits=False)  # fmt: skip
    seen = summarise(bank, "bank", references=minilm.trace(["river", "money"]), control=control)
    (panel,) = movement_panels(seen)
    for curve, each in zip(panel["curves"], seen.neutral, strict=True):
        assert curve["neutral"]["sentences"] == 12
        for name in ("mean", "low", "high"):
            assert torch.allclose(torch.tensor(curve["neutral"][name]), torch.tensor(getattr(each, name)), atol=1e-6)
    assert panel["nearness"].endswith("Dotted: the mean in 12 neutral sentences. Shaded: their range")


def test_shares_are_those_of_the_layers(traces: list[Trace], seen: Summary) -> None:
    (panel,) = movement_panels(seen)
    for path, each in zip(panel["paths"], seen.occurrences, strict=True):
        updates = layer_updates(traces[each.text], each.as_word())
        assert len(path["steps"]) == len(updates) == 2
        for step, update in zip(path["steps"], updates, strict=True):
            assert abs(step["attention"] - update.attention.share) < 1e-6
            assert abs(step["rest"] - update.feed_forward_share) < 1e-6
            assert abs(step["attention"] + step["rest"] - 1) < 1e-5
            assert step["cross"] is None
            assert f"{update.attention.top[0].share:+.2f}" in step["most"]  # type: ignore[union-attr]
    refused = [replace(seen.layer_updates[0], updates=None, refused="why not"), *seen.layer_updates[1:]]
    path = movement_panels(replace(seen, layer_updates=refused))[0]["paths"][0]
    assert (path["steps"], path["refused"]) == (None, "why not")


def test_massive_activations_are_named(seen: Summary) -> None:
    massive = [Massive("word", "bank", "1", 2 * MASSIVE), Massive("reference", "ri\x1bver", "", 3 * MASSIVE)]
    (panel,) = movement_panels(replace(seen, massive=massive))
    assert panel["sentences"] == [
        "Cosines say little for massive activations: “bank” 1 (20 times the median length) and "
        r"“ri\x1bver” (30 times the median length)."
    ]


def test_without_reference_words_the_curve_is_to_the_start(
    traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = summarise(traces, "bank")
    (panel,) = movement_panels(seen)
    (curve,) = panel["curves"]
    assert (curve["label"], panel["compared"]) == ("itself as it enters layer 0", False)
    assert [path[0] for path in curve["paths"]] == pytest.approx([1.0] * 3)
    monkeypatch.setattr("regard.questions.movement.MAX_COMPARED", 2)
    (panel,) = movement_panels(seen)
    assert panel["between"] is None
    assert "3 paths are too many to compare with each other (at most 2)." in panel["sentences"]


def test_a_page_that_opens_at_a_word_has_its_movement(traces: list[Trace]) -> None:
    page = page_as_seen(traces, None, "bank")
    assert [(panel["kind"], panel["name"]) for panel in page.panels] == [("paths", "Movement")]
    assert page.opening["view"] == "tokens"
    assert page_as_seen(traces).panels == []
    assert page_of(traces, None, Opening(word="bank"), findings=["a"]).panels == []
    named: Any = page_as_seen(traces, None, "bank", names=["before", "after"]).panels[0]
    assert [path["of"] for path in named["paths"]] == ["before", "after", "after"]


def test_a_page_without_states_says_so(traces: list[Trace], seen: Summary) -> None:
    without = replace(seen, massive=None)
    assert movement_panels(without) == []
    line = "The path of “bank” through the layers is not shown: a trace does not hold all hidden states."
    assert notes_on_movement(without) == [line] == [missing("bank", "a trace does not hold all hidden states")]
    page = replace(see(traces, "bank"), summary=without).page()
    assert (page.panels, page.findings[-1]) == ([], line)
    assert movement_panels(replace(seen, occurrences=[])) == notes_on_movement(replace(seen, occurrences=[])) == []


def test_of_a_translation_each_side_has_its_own() -> None:
    trace = pair().trace(TEXTS[0], target=TARGETS[0])
    (panel,) = movement_panels(summarise([trace], "rivière"))
    assert (panel["name"], panel["title"]) == ("Movement", "How “rivière” moves through the layers of the target")
    step = panel["paths"][0]["steps"][0]
    assert step["cross"] is not None
    assert abs(step["attention"] + step["cross"] + step["rest"] - 1) < 1e-5
    assert panel["paths"][0]["of"] == "target 1"
    both = movement_panels(summarise([pair().trace("A bank", target="A bank")], "bank"))
    assert [each["name"] for each in both] == ["Movement, source", "Movement, target"]


def test_windows_are_named(minilm: Any) -> None:
    text = "A man is fishing on a river bank and another is sitting at a bank."
    windowed = minilm.trace(text, window=12)
    panel: Any = page_as_seen(windowed, None, "bank").panels[0]
    assert [path["label"] for path in panel["paths"]] == ["1.1", "1.3"]
    expected = [f"text 1, tokens {start} to {stop - 1}" for start, stop in windowed.spans[::2]]
    assert [path["of"] for path in panel["paths"]] == expected


def test_the_word_stands_in_its_text() -> None:
    model = opened("llama")
    text = "A man is fishing on a river . " * 4 + "A bank . " + "She takes money . " * 5
    (panel,) = movement_panels(summarise([model.trace(text)], "bank"))
    context = panel["paths"][0]["context"]
    assert context["form"] == "bank"
    assert context["left"].startswith("… ")
    assert context["right"].endswith(" …")
    assert context["left"][2:] + "bank" + context["right"][:-2] in text
