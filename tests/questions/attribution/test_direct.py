"""What made the model say it: against passes written out in float64, and a fact that is known."""

from dataclasses import replace
from typing import Any

import pytest
import torch

import regard
from regard.capture.gradients.score_path import AttributionTarget, SideParts, Writer
from regard.errors import RegardError
from regard.models.model import Model
from regard.questions.attribution.direct import split_outcome
from tests.support import RIVER, by_hand
from tests.support.own_models import TEXTS, opened, pair


def test_closed_form() -> None:
    trace = opened("gpt").trace(TEXTS[0])
    value = float(trace.logits[4, 7] - trace.logits[4, 2])
    vectors = torch.tensor([[3.0], [-1.0], [value - 2.0]], dtype=torch.float64)
    writers = (Writer("token"), Writer("attention", 1, 2, 0), Writer("attention", 1, 2, 3))
    parts = SideParts(writers, vectors, vectors.sum(0), (4,))
    asked: list[Any] = []
    found = split_outcome(trace, 4, AttributionTarget(7, 2), lambda *given: asked.append(given) or parts)
    ((outcome, rows),) = asked
    assert (outcome.token, outcome.against, rows) == (7, 2, [4])
    assert found.value == pytest.approx(value)
    assert dict(found.by()) == pytest.approx({"token embedding": 3.0, "layer 1, head 2": value - 3.0})
    assert dict(found.by("token"))[f"layer 1, head 2 from “{trace.tokens[0].text}” (0)"] == pytest.approx(-1.0)
    assert sum(row["adds"] for row in found.rows()) == pytest.approx(value)
    with pytest.raises(RegardError, match="the parts' sum differs from the outcome by .* allowed is 1e-04"):
        split_outcome(trace, 4, AttributionTarget(7, 2), lambda *_: replace(parts, vectors=vectors * 1.01))
    with pytest.raises(RegardError, match="the trace has to be of this model"):
        split_outcome(trace, 4, AttributionTarget(7, 2), lambda *_: replace(parts, whole=parts.whole + 1))


def test_stories_by_hand(stories: Any) -> None:
    trace = stories.trace("Once upon a time, there was a river.")
    found = regard.attribution(stories, trace, 6, 300, against=310)
    states = by_hand.llama_states(stories.model, [token.id for token in trace.tokens])
    table = stories.model.get_output_embeddings().weight.detach().double()
    expected = {name: float(part[6] @ (table[300] - table[310])) for name, part in states.items()}
    assert dict(found.by()) == pytest.approx(expected, abs=1e-5 * sum(map(abs, expected.values())))


def test_minilms_cosine(minilm: Model, bank: Any) -> None:
    river = bank[0]
    found = regard.attribution(minilm, river, "bank", toward=river["river"])
    expected = torch.cosine_similarity(river["bank"], river["river"], dim=0)
    assert found.value == pytest.approx(float(expected), abs=1e-5)
    assert found.error < 1e-5
    assert "position embedding" in dict(found.by())
    for by in ("token", "source", "layer", "kind"):
        assert sum(each for _, each in found.by(by)) == pytest.approx(found.value, abs=1e-5)


def test_smollm2_takes_paris_from_france(smollm2: Any) -> None:
    trace = smollm2.trace("The capital of France is")
    found = regard.attribution(smollm2, trace, len(trace.tokens) - 1, " Paris", against=" London")
    assert found.outcome == "logit difference “Paris” − “London” at “is”"
    assert found.value > 3
    assert found.by("source")[0][0] == "attention from “France” (3)"
    with pytest.raises(RegardError, match="isn't a single token of the vocabulary"):
        regard.attribution(smollm2, trace, "is", " Par is")


def test_bad_input(minilm: Model, bank: Any) -> None:
    model = opened("gpt")
    trace = model.trace(TEXTS[0])
    for given in ({}, {"toward": torch.ones(12), "token": 3}, {"against": 3}):
        with pytest.raises(RegardError, match="pass a token \\(optionally with against=\\) or a direction"):
            regard.attribution(model, trace, 3, **given)
    with pytest.raises(RegardError, match="token id 999 is out of range"):
        regard.attribution(model, trace, 3, 999)
    with pytest.raises(RegardError, match=r"toward has shape \(5,\), expected \(12,\)"):
        regard.attribution(model, trace, 3, toward=torch.ones(5))
    with pytest.raises(RegardError, match="token 99 is out of range"):
        regard.attribution(model, trace, 99, 3)
    with pytest.raises(RegardError, match="has no logits: pass a direction, toward="):
        regard.attribution(minilm, bank[0], "bank", 7)
    cut = minilm.trace(RIVER, interventions=[regard.ablate(regard.head(0, 3))])
    with pytest.raises(RegardError, match="without interventions"):
        regard.attribution(minilm, cut, "bank", toward=torch.ones(384))


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_of_a_pair_and_what_is_no_trace() -> None:
    model = pair()
    trace = model.trace(TEXTS[0], target="Un homme")
    assert regard.attribution(model, trace, 2, 7).error < 1e-5
    with pytest.raises(RegardError, match="got str, expected a trace"):
        regard.attribution(model, "river", 2, 7)  # type: ignore[arg-type]


def test_source_tokens_of_one_word_are_taken_together(minilm: Model) -> None:
    trace = minilm.trace("The riverbankers sat on a bank.")
    found = regard.attribution(minilm, trace, "bank", toward=trace["riverbankers"])
    pieces = trace.word("riverbankers")[0].tokens
    single = dict(found.by("source"))
    together = dict(found.by("source", words=True))
    expected = sum(single[f"attention from “{trace.tokens[n].text.strip()}” ({n})"] for n in pieces)
    assert len(pieces) > 1
    assert together[f"attention from “riverbankers” ({pieces[0]})"] == pytest.approx(expected)
    assert len(together) == len(single) - len(pieces) + 1
    assert sum(together.values()) == pytest.approx(found.value, abs=1e-5)
    heads = dict(found.by("token", words=True))
    whole = [added for name, added in heads.items() if f"from “riverbankers” ({pieces[0]})" in name]
    assert sum(whole) == pytest.approx(expected)
    assert dict(found.by("kind", words=True)) == dict(found.by("kind"))
