"""The benchmark of explanations: its scores against closed forms, its truth against hands, its page against itself."""

import json
import math

import numpy as np
import pytest
import torch

import regard
from benchmarks.faithfulness import scores
from benchmarks.faithfulness.cases import word_cases
from benchmarks.faithfulness.exchanged import replaced
from benchmarks.faithfulness.measure import OWN_EDGES, REMOVAL, look
from benchmarks.faithfulness.methods import METHODS, at_random, mean_weight, patched_edges
from benchmarks.faithfulness.removal import measured, own_edges, removed_sources, without
from regard.models.readout import gradient_run

WEIGHTS = [4.0, -1.0, 2.0, 0.5, 0.25]


def linear(removed: frozenset[int]) -> float:
    """An outcome to which each source adds its weight."""
    return sum(weight for n, weight in enumerate(WEIGHTS) if n not in removed)


def test_curves_of_an_outcome_that_is_a_sum() -> None:
    """By hand: 5 sources, measured without 0, 1, 2, 3 and 5 of them; the best order is that of the weights."""
    assert scores.steps(5) == [0, 1, 2, 3, 5]
    assert scores.steps(12) == [0, 2, 3, 6, 12]
    assert scores.order(WEIGHTS) == [0, 2, 3, 4, 1]
    assert scores.deletions(WEIGHTS)[2] == {0, 2}
    assert scores.insertions(WEIGHTS)[2] == {3, 4, 1}
    lost = (0 + 4) / 2 + (4 + 6) / 2 + (6 + 6.5) / 2 + 2 * (6.5 + 5.75) / 2
    assert scores.deletion(WEIGHTS, linear) == pytest.approx(lost / 5)
    assert scores.insertion(WEIGHTS, linear) == pytest.approx(lost / 5)  # of sums both are one
    worst = [-each for each in WEIGHTS]
    assert scores.deletion(worst, linear) < scores.deletion([1.0] * 5, linear) < scores.deletion(WEIGHTS, linear)
    assert scores.area([0, 3, 12], [0.0, 1.0, 1.0]) == pytest.approx(0.875)


def test_agreement_with_and_without_signs() -> None:
    assert scores.agreement(WEIGHTS, WEIGHTS, signed=True) == pytest.approx(1)
    assert scores.agreement([abs(each) for each in WEIGHTS], WEIGHTS, signed=False) == pytest.approx(1)
    assert scores.agreement([abs(each) for each in WEIGHTS], WEIGHTS, signed=True) < 1
    assert scores.agreement([-each for each in WEIGHTS], WEIGHTS, signed=True) == pytest.approx(-1)


def test_intervals_hold_the_mean_as_often_as_they_say() -> None:
    middle, low, high = scores.interval([3.0, 3.0, 3.0, math.nan])
    assert (middle, low, high) == (3.0, 3.0, 3.0)
    assert all(map(math.isnan, scores.interval([math.nan])))
    drawn = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        _, low, high = scores.interval(drawn.normal(size=60).tolist())
        held += low <= 0 <= high
    assert 180 <= held <= 198
    _, low, high = scores.interval(drawn.normal(size=400).tolist())
    assert high - low == pytest.approx(2 * 1.96 / 20, rel=0.15)


POOL = ["The old river bank was quiet that night.", *(f"They sat on the {word} bank." for word in "abcdefgh")]


@pytest.fixture(scope="module")
def case(minilm):
    return next(iter(word_cases(minilm, [f"{each[:-5]}river {each[-5:]}" for each in POOL[1:]] + POOL[:1], 0)))


def test_a_words_case(minilm, case) -> None:
    assert case.outcome.name.startswith("cosine of “river”")
    own = case.trace["river"].double()
    value = float(own @ case.toward.double() / (own.norm() * case.toward.double().norm()))
    assert case.outcome.of(case.trace) == pytest.approx(value, abs=1e-6)
    words = [each for each in case.sources if not each.apart]
    assert "river" not in [each.name for each in words]
    assert words[-1].name == "bank."
    assert len(words[-1].tokens) == 2  # with the full stop
    assert [each.name for each in case.sources if each.apart] == ["[CLS]", "[SEP]"]
    covered = sorted(n for each in case.sources for n in each.tokens)
    assert covered == [n for n in range(len(case.trace.tokens)) if n not in case.place]


def test_removal_is_what_it_says(minilm, case) -> None:
    numbers = [n for n, each in enumerate(case.sources) if each.name in ("They", "bank.")]
    assert len(numbers) == 2
    hidden = [t for n in numbers for t in case.sources[n].tokens]
    trace = minilm.trace(case.text, interventions=removed_sources(case, frozenset(numbers)))
    for each in trace.attention:
        assert torch.all(each.dense()[:, :, hidden] == 0)
    found = without(case, [frozenset(numbers), frozenset(), frozenset(numbers)])
    assert found[frozenset(numbers)][0] == pytest.approx(case.outcome.of(trace), abs=1e-5)
    assert found[frozenset()] == pytest.approx((case.outcome.of(case.trace), 0), abs=1e-5)
    by_hand = minilm.trace(
        case.text, interventions=[regard.ablate(regard.edge("river", t)) for t in case.sources[numbers[1]].tokens]
    )
    assert measured(case, [own_edges(case, numbers[1])])[0][0] == pytest.approx(case.outcome.of(by_hand), abs=1e-5)


def test_batches_are_what_the_library_computes_one_by_one(minilm, case) -> None:
    bank = next(n for n, each in enumerate(case.sources) if each.name == "bank.")
    tokens = list(case.sources[bank].tokens)

    def exchange(_side: int, own: torch.Tensor) -> torch.Tensor:
        own = own.clone()
        own[tokens] = minilm.model.get_input_embeddings().weight.detach().mean(0)
        return own

    _, run = gradient_run(minilm, case.trace, exchange)
    assert replaced(case)[bank] == pytest.approx(case.outcome.of(run), abs=1e-5)
    assert replaced(case)[bank] != pytest.approx(case.outcome.of(case.trace), abs=1e-4)


def test_patched_edges_are_the_slope_of_the_removal(minilm, case) -> None:
    """With one layer and an outcome that is linear in the head's outputs the estimate is the effect itself."""
    weights = mean_weight(case)
    assert sum(weights) < 1  # the rest is the word's own
    found = patched_edges(case)
    alone = without(case, [frozenset({n}) for n in range(len(case.sources))])
    effects = [case.outcome.of(case.trace) - alone[frozenset({n})][0] for n in range(len(case.sources))]
    words = [n for n, each in enumerate(case.sources) if not each.apart]
    assert scores.agreement([found[n] for n in words], [effects[n] for n in words], signed=True) > 0.5


def test_a_whole_look(case) -> None:
    found = look(case)
    json.dumps(found)
    assert set(found["methods"]) == {each.name for each in METHODS} | {OWN_EDGES, REMOVAL}
    of_truth = found["methods"][REMOVAL]
    assert of_truth["absolute"] == of_truth["signed"] == of_truth["with sinks"] == pytest.approx(1)
    for scored in found["methods"].values():
        assert all(-1 <= scored[name] <= 1 for name in ("absolute", "signed", "with sinks", "replaced", "moved"))
    assert found["numbers"]["random order"] == at_random(case)
    words = [n for n, each in enumerate(case.sources) if not each.apart]
    assert found["nothing"] == pytest.approx(without(case, [frozenset(words)])[frozenset(words)][0], abs=1e-5)
