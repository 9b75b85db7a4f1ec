"""What heads brought to an outcome by gradients: against finite differences, the maps, and really ablating heads."""

import copy
from typing import Any

import pytest
import torch

import regard
from regard.explain.causes.outcomes import Outcome, number_of
from tests.questions.attribution.conftest import RIVER
from tests.support import generation
from tests.support.own_models import TEXTS, opened, pair

WIDTH = 32  # of a head of MiniLM


@pytest.fixture(scope="module")
def found(minilm: Any, river: Any, outcome: Outcome) -> Any:
    return regard.attribute_to_heads(minilm, river, outcome)


def test_a_head_that_gives_a_little_more_moves_the_outcome_by_its_number(
    minilm: Any, river: Any, outcome: Outcome, found: Any
) -> None:
    """In a copy of the model whose W_O takes a little more, or less, of one head."""
    for layer, head in ((0, 3), (3, 7), (5, 1), (5, 11)):
        ends = []
        for step in (-0.05, 0.05):
            model = regard.load(copy.deepcopy(minilm.model), tokenizer=minilm.tokenizer)
            weight = model.model.encoder.layer[layer].attention.output.dense.weight
            with torch.no_grad():
                weight[:, head * WIDTH : (head + 1) * WIDTH] *= 1 + step
            ends.append(outcome.of(model.trace(RIVER)))
        assert float(found.scores[layer][head]) == pytest.approx((ends[1] - ends[0]) / 0.1, abs=2e-5)


def test_each_split_by_source_token(river: Any, found: Any) -> None:
    for scores, sources in zip(found.scores, found.sources, strict=True):
        torch.testing.assert_close(sources.sum(1), scores, atol=1e-8, rtol=1e-4)
    assert found.sources[2].shape == (12, len(river.tokens))


def test_the_split_is_weight_times_value_times_slope(minilm: Any, river: Any, outcome: Outcome, found: Any) -> None:
    """Written out with the trace's whole weights, of the last layer, where the slope is known by autograd alone."""
    from regard.models.readout import gradient_run

    done, own = gradient_run(minilm, river, heads=True)
    (slope,) = done.gradients(number_of(outcome, own), [done.heads[5].output])
    weights, values = river.attention[5][:].double(), river.values[5].double()
    expected = torch.einsum("hls,hse,hle->hs", weights, values, slope[0].double())
    torch.testing.assert_close(found.sources[5], expected, atol=1e-6, rtol=1e-3)


def test_of_a_causal_model_later_tokens_bring_nothing() -> None:
    model = generation.opened("llama")
    trace = model.trace(ids=generation.IDS)
    inner = Outcome("a logit", lambda each: each.sides[-1].logits[2, 3])
    found = regard.attribute_to_heads(model, trace, inner)
    assert all(bool((each[:, 3:] == 0).all()) for each in found.sources)
    assert all(bool((each[:, :3] != 0).any()) for each in found.sources)


def test_rows_and_names() -> None:
    model = opened("gpt")
    trace = model.trace(TEXTS[0])
    found = regard.attribute_to_heads(model, trace, Outcome("a logit", lambda each: each.sides[-1].logits[-1, 3]))
    rows = found.rows()
    assert [(row["layer"], row["head"]) for row in rows] == [(layer, head) for layer in (0, 1) for head in (0, 1, 2)]
    name, score = found.by()[0]
    call, head, best = found.best(1)[0]
    assert (name, score) == (f"layer {call.layer}, head {head}", best)


def test_of_a_pair() -> None:
    model = pair()
    trace = model.trace(TEXTS[0], target="Un homme")
    found = regard.attribute_to_heads(model, trace, Outcome("a logit", lambda each: each.sides[-1].logits[1, 3]))
    assert {row["part"] for row in found.rows()} == {"encoder", "decoder", "cross"}
    cross = next(n for n, call in enumerate(found.calls) if call.part == "cross")
    assert found.sources[cross].shape[1] == len(found.tokens[cross]) == len(trace.encoder.tokens)
    assert any(name.startswith("cross-attention layer") for name, _ in found.by())
