"""The benchmark of explanations: its scores against closed forms, its truth against hands, its page against itself."""

import json
import math
import os
import re
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from benchmarks.faithfulness import page, scores, tables, texts
from benchmarks.faithfulness.cases import group, next_token_cases, translation_cases, word_cases
from benchmarks.faithfulness.exchanged import replaced
from benchmarks.faithfulness.measure import OWN_EDGES, REMOVAL, look
from benchmarks.faithfulness.methods import METHODS, at_random, mean_weight, patched_edges
from benchmarks.faithfulness.removal import measured, own_edges, removed_sources, without
from regard.explain.causes.outcomes import Outcome
from regard.models.gradient_runs import gradient_run

WEIGHTS = [4.0, -1.0, 2.0, 0.5, 0.25]
CELL = re.compile(r"\(?\**(-?\d\.\d+) \[(-?\d\.\d+), (-?\d\.\d+)\]\**\)?")


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


def test_sentences_are_whole_plain_and_drawn_alike() -> None:
    book = (
        "CHAPTER 1. Loomings.\n\nCall me Ishmael. There now is the old ship that\nsailed away from the quiet harbour. "
        "“Speak, thou vast and venerable head, which has no beard, and say it all,” he said. "
        "Of all the men who went to sea that year none came back."
    )
    found = texts.sentences(book)
    assert sorted(found) == [
        "Of all the men who went to sea that year none came back.",
        "There now is the old ship that sailed away from the quiet harbour.",
    ]
    assert texts.sentences(book) == found
    assert texts.words("Call me, Ishmael.") == [("Call", 0, 4), ("me,", 5, 8), ("Ishmael.", 9, 17)]
    assert [each[0] for each in texts.letters("The old sperm-whale sank l’eau vers là-bas, Ahab", 4)] == [
        "sank",
        "vers",
    ]
    assert list(texts.sharing("ship", ["A ship.", "Ships.", "Ship to ship.", "The ship sank."], "A ship.")) == [
        "The ship sank."
    ]


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


@pytest.mark.real
@pytest.mark.parametrize(
    ("cases", "variable"), [(next_token_cases, "REGARD_SMOLLM2"), (translation_cases, "REGARD_OPUS_MT")]
)
def test_next_tokens_are_the_texts_own(cases, variable: str) -> None:
    if not os.environ.get(variable):
        pytest.skip(f"{variable} names no folder")
    model = regard.load(os.environ[variable], device="cpu")
    sentence = "The old sailor looked over the dark water and waited for the white whale."
    (case,) = islice(cases(model, [sentence], 0), 1)
    logits = case.own.logits[case.place[0]].double().log_softmax(-1)
    assert case.outcome.of(case.trace) == pytest.approx(float(logits[case.token]), abs=1e-9)
    if case.target is None:
        whole = model.tokenizer(sentence)["input_ids"]
        assert whole[: len(case.trace.tokens) + 1] == [*(token.id for token in case.trace.tokens), case.token]
    else:
        whole = model.tokenizer(text_target=case.target)["input_ids"]  # the decoder reads a start token before it
        assert whole[: len(case.own.tokens)] == [*(token.id for token in case.own.tokens[1:]), case.token]
        assert {each.side for each in case.sources} == {0, 1}
    assert all(
        t < case.place[0] for each in case.sources if each.side == len(case.trace.sides) - 1 for t in each.tokens
    )
    everything = frozenset(n for n, each in enumerate(case.sources))
    found = without(case, [everything, frozenset()])
    assert found[frozenset()][0] == pytest.approx(case.outcome.of(case.trace), abs=1e-3)
    assert found[everything][0] != pytest.approx(case.outcome.of(case.trace), abs=1e-2)


def test_the_page_is_what_the_benchmark_writes() -> None:
    """Every method has its row, every cell a mean inside its interval, and the best of each model is in bold."""
    text = page.PAGE.read_text(encoding="utf-8")
    main = re.search(r"^\| method \| MiniLM, cosine .*?\n\n", text, re.M | re.S)
    assert main
    lines = main[0].strip().splitlines()
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines[2:]] == [
        *tables.PREDICTED, OWN_EDGES, "random order",
    ]  # fmt: skip
    columns = list(zip(*([CELL.fullmatch(cell) for cell in line.split(" | ")[1:5]] for line in lines[2:]), strict=True))
    assert len(columns) == len(tables.COLUMNS)
    for column in columns:
        found = [tuple(map(float, cell.groups())) for cell in column]
        assert all(-1 <= low <= middle <= high <= 1 for middle, low, high in found)
        bold = [n for n, cell in enumerate(column) if "**" in cell[0]]
        assert len(bold) == 1
        predicted = found[: len(tables.PREDICTED)]
        assert predicted[bold[0]][0] == max(middle for middle, _, _ in predicted)
        assert found[-1][1] <= 0 <= found[-1][2] or abs(found[-1][0]) < 0.1  # chance is chance
    assert all(line.count("|") == lines[0].count("|") for line in lines)


def test_the_page_is_written_from_what_was_measured(tmp_path: Path, monkeypatch, case) -> None:
    methods = {
        name: dict.fromkeys(("absolute", "signed", "with sinks", "replaced", "moved", "deletion", "insertion"), 0.25)
        for name in (*(each.name for each in METHODS), OWN_EDGES, REMOVAL)
    }
    methods["integrated gradients"]["absolute"] = 0.5
    methods["attention rollout"]["moved"] = 0.75
    one = {
        "text": "a", "target": None, "outcome": "b", "whole": 1.0, "nothing": 0.5, "place": [1],
        "sources": [["a", 0, [0], False]] * 7, "methods": methods, "edges moved": 0.5,
        "seconds": dict.fromkeys((each.name for each in METHODS), 0.001), "runs": 7,
    }  # fmt: skip
    models = [
        {"model": name, "name": name, "machine": "m", "torch": "t", "seed": 0, "sentences": 9, "seconds": 60.0,
         "texts": [one, one]}
        for name in tables.UNITS
    ]  # fmt: skip
    monkeypatch.setattr(page, "PAGE", tmp_path / "faithfulness.md")
    page.write(models)
    written = (tmp_path / "faithfulness.md").read_text(encoding="utf-8")
    assert written.count("**0.50 [0.50, 0.50]**") == 3  # by the cosine and both log-probabilities
    assert written.count("**0.75 [0.75, 0.75]**") == 1
    assert "- MiniLM, moved: **attention rollout**, 0.75; ahead of" in written


def test_groups_are_ends_of_edges(case) -> None:
    assert group((1, 2)).tokens == (1, 2)
    assert isinstance(case.outcome, Outcome)
