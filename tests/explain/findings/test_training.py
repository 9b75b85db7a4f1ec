"""Sentences about a run are its log's numbers: nothing falls that did not fall."""

import math

import pytest

from regard.explain.findings.training import MOST, evaluations, some_evaluations, training_findings


def log(losses: list[float], held: dict[int, float] | None = None) -> list[dict[str, int | float | None]]:
    return [{"step": n, "loss": loss, "validation": (held or {}).get(n)} for n, loss in enumerate(losses, 1)]


def test_the_numbers_are_the_logs() -> None:
    said = training_findings(log([4.0, 3.0, 2.0, 1.0], {2: 3.5, 3: 2.5, 4: 2.0}), 65)
    assert said == [
        f"From step 1 to 4 the loss fell from 4.00 to 1.00 nats a token: as unsure as among {math.e:.1f} equally "
        "likely tokens.",
        f"Guessing evenly among its 65 tokens would be 4.17; the run is {math.log(65) - 1:.2f} below it.",
        "Held out it is smallest at its last evaluation, 2.00 at step 4: still falling.",
        "On texts held out the loss is 1.00 larger than on those it trained on.",
    ]


def test_what_did_not_fall() -> None:
    rose = training_findings(log([4.2, 4.5]), 65)
    assert "rose from 4.20 to 4.50" in rose[0]
    assert rose[1].endswith("the run is no better than that.")
    assert len(rose) == 2
    assert "stayed at about 4.00 nats" in training_findings(log([4.0, 4.0]), 65)[0]


def test_texts_that_are_learned_by_heart() -> None:
    said = training_findings(log([4.0, 2.0, 1.0, 0.5], {1: 4.0, 2: 3.0, 4: 3.4}), 65)
    assert said[2] == (
        "Held out it was smallest at step 2 (3.00) and is 3.40 at step 4: since then it learned its own texts, "
        "not others."
    )


def test_one_update_none_and_smoothed_labels() -> None:
    assert training_findings([], 65) == []
    assert training_findings(log([math.nan]), 65) == []
    assert training_findings(log([2.0], {1: 2.0}), 1) == [
        "After one update the loss is 2.00 nats a token: as unsure as among 7.4 equally likely tokens.",
        "Held out the loss is 2.00 at step 1.",
    ]
    assert "unsure" not in training_findings(log([3.0, 2.0]), 65, smoothing=0.1)[0]


def test_means_at_the_ends_of_long_runs() -> None:
    said = training_findings(log([4.0, 2.0] * 50), 65)
    assert "stayed at about 3.00 nats a token, each a mean of 2 updates" in said[0]


def test_evaluations() -> None:
    found = evaluations(log([4.0, 2.0, 1.0], {2: 2.5, 3: 2.0}))
    assert [(each.step, each.loss, each.validation) for each in found] == [(2, 3.0, 2.5), (3, 1.0, 2.0)]
    many = evaluations(log([1.0] * 100, dict.fromkeys(range(1, 101), 1.0)))
    some = some_evaluations(many)
    assert (len(some), some[0].step, some[-1].step) == (MOST, 1, 100)
    assert some_evaluations(found) == found


@pytest.mark.parametrize("vocabulary", [1, 2, 50_000])
def test_any_vocabulary(vocabulary: int) -> None:
    assert training_findings(log([1.0, 0.5]), vocabulary)
