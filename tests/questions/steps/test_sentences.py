"""Sentences about one head's steps are the record's numbers, and follow from each other."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from regard.explain.weights.sinks import Sink
from regard.questions.steps.answer import Steps
from regard.questions.steps.sentences import root_of, shares
from regard.textbook import HeadSteps, head_steps
from regard.trace.trace import Trace


@pytest.fixture(scope="module")
def trace(minilm) -> Trace:
    return minilm.trace("he went to the river bank to fish")


def said(trace: Trace, record: HeadSteps, times: int = 1, sinks: Sequence[Sink] = ()) -> list[str]:
    return Steps("bank", 0, 3, trace.tokens, sinks, [(6, record)] * times).findings()


def test_the_numbers_are_the_records(trace: Trace) -> None:
    record = head_steps(trace, 6, 0, 3)
    looks, equal, comes, gives = said(trace, record)
    best = record.weights.argsort(descending=True)[:3].tolist()
    assert looks.startswith("In layer 0, head 3 “bank” ")
    for n in best:
        assert f"{float(record.weights[n]):.2f}" in looks
    assert (
        equal
        == f"Equal weights would be 1/10 = 0.10 each; the largest is {float(record.weights.max()) * 10:.1f} times that."
    )
    words = [n for n in range(10) if n != 6 and not trace.tokens[n].special]
    n = max(words, key=lambda place: float(record.weights[place]))
    assert f"q · k = {float(record.products[n]):.2f}, times 0.177 (1/√32) is {float(record.scaled[n]):.2f}" in comes
    exponent = torch.exp(record.scores[n] - record.scores.max())
    assert float(exponent / record.total) == pytest.approx(float(record.weights[n]))
    assert f"/ {record.total:.2f} = " in comes
    assert f"{float(shares(record).max()):.0%}" in gives


def test_shares_add_up(trace: Trace) -> None:
    record = head_steps(trace, 6, 2, 1)
    assert float(shares(record).sum()) == pytest.approx(1)
    nothing = replace(record, context=torch.zeros_like(record.context))
    assert not shares(nothing).any()
    assert not any("context vector" in sentence for sentence in said(trace, nothing))


def test_the_largest_weight_need_not_give_most(trace: Trace) -> None:
    record = head_steps(trace, 6, 0, 3)
    parts = torch.zeros_like(record.weighted)
    most, other = record.weights.argsort(descending=True)[:2].tolist()
    parts[other, 0] = 1.0
    assert "has the largest weight: its value" in said(trace, replace(record, weighted=parts, context=parts.sum(0)))[3]
    parts[most, 0] = 5.0
    assert "has the largest weight" not in said(trace, replace(record, weighted=parts, context=parts.sum(0)))[3]


def test_one_token_that_it_may_look_at(trace: Trace) -> None:
    record = head_steps(trace, 6, 0, 3)
    alone = torch.full_like(record.scores, -torch.inf)
    alone[6] = 1.0
    weights = torch.zeros_like(record.weights)
    weights[6] = 1.0
    sentences = said(trace, replace(record, scores=alone, weights=weights))
    assert sentences[0] == "In layer 0, head 3 “bank” may look at itself alone."
    assert not any("Equal weights" in sentence for sentence in sentences)


def test_later_tokens_and_biases_are_said(trace: Trace) -> None:
    record = head_steps(trace, 6, 0, 3)
    causal = record.scores.clone()
    causal[7:] = -torch.inf
    assert said(trace, replace(record, scores=causal))[1].endswith("3 later ones it may not look at.")
    assert ", with bias " in said(trace, replace(record, scores=record.scores + 1))[2]


def test_several_tokens_share_the_screen(trace: Trace) -> None:
    record = head_steps(trace, 6, 0, 3)
    sentences = said(trace, record, 6)
    assert len(sentences) == 5
    assert "“bank” (token 6)" in sentences[0]
    assert sentences[-1] == "2 more of its tokens have tables of their own."


def test_sinks_and_words_that_stand_twice_are_named(trace: Trace) -> None:
    record = head_steps(trace, 6, 0, 3)
    weights = torch.zeros_like(record.weights)
    weights[3], weights[0] = 0.6, 0.4
    (looks, *_) = said(trace, replace(record, weights=weights), sinks=[Sink(0, "[CLS]", 0.4, 0.5)])
    assert looks.endswith("gives most of its weight to “to” (3) 0.60 and [CLS] (0, a sink) 0.40.")


def test_the_usual_scale_has_a_name(trace: Trace) -> None:
    record = head_steps(trace, 6, 0, 3)
    assert root_of(record) == "1/√32"
    assert root_of(replace(record, scale=0.2)) == ""
