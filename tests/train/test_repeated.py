"""Letters that come again: what the text is, and that a head learns to look behind them, as commands show it."""

import json
from pathlib import Path

import pytest

import regard
from regard.explain.weights.head_scores import head_scores
from regard.explain.weights.repeated_tokens import repeated_tokens
from regard.train.repeated import LETTERS, LINE, PERIODS, repeated_training_line, repeated_training_text
from tests.support import in_one_process


def period(line: str) -> int:
    return next(n for n in range(1, len(line)) if all(a == b for a, b in zip(line, line[n:], strict=False)))


def test_lines_are_different_letters_over_and_over() -> None:
    text = repeated_training_text(7, lines=300)
    assert text == repeated_training_text(7, lines=300) != repeated_training_text(8, lines=300)
    lines = text.splitlines()
    assert (len(lines), {len(line) for line in lines}) == (300, {LINE})
    periods = [period(line) for line in lines]
    assert {min(periods), max(periods)} == set(PERIODS)
    assert all(len(set(line[:n])) == n for line, n in zip(lines, periods, strict=True))
    assert set("".join(lines)) == set(LETTERS)


def test_the_watched_line_repeats_and_is_in_no_text() -> None:
    for length in (4, 17, 24, 48):
        line = repeated_training_line(3, length)
        assert len(line) == length
        assert 2 * period(line) <= length
    assert repeated_training_line(3, 24) not in repeated_training_text(3)


@pytest.mark.long
def test_commands_show_when_induction_formed(tmp_path: Path) -> None:
    """`regard train --repeated`, and `regard evolve`: the head, the step, and the same from the run's last model."""
    run = tmp_path / "run"
    calls = [
        ["train", "--repeated", "--out", str(run)],
        ["evolve", str(run), "--layer", "1", "--json", str(tmp_path / "formed.json")],
        ["evolve", str(run), "--layer", "1", "--full"],
    ]
    (code, _, error), (_, shown, _), (_, every, _) = in_one_process(tmp_path, calls)
    assert (code, error) == (0, "")
    found = json.loads((tmp_path / "formed.json").read_text("utf-8"))
    steps, scores = found["steps"], found["induction"]
    last = {(layer, head): score for layer, row in enumerate(scores[-1]) for head, score in enumerate(row)}
    (layer, head), score = max(last.items(), key=lambda item: item[1])
    assert layer == 1  # behind a head of the first layer that looks at the token before
    assert score > 0.5
    assert max(scores[0][0] + scores[0][1]) < 0.2
    by = next(n for n in range(len(steps)) if all(each[layer][head] >= score / 2 for each in scores[n:]))
    assert 0 < by < len(steps) - 1
    assert f"Layer {layer}, head {head} is an induction head from step {steps[by]} on" in " ".join(shown.split())
    assert f"L{layer}H{head}" in every
    model = regard.load(run)
    watched = json.loads((run / "run.json").read_text("utf-8"))["watch"]
    assert head_scores(model.trace(watched)).induction.tolist() == [pytest.approx(row, abs=1e-5) for row in scores[-1]]
    tested = repeated_tokens(model, length=10)  # on random letters that it has not seen
    assert tested.best("induction", 1)[0][:2] == (layer, head)
    assert tested.best("previous", 1)[0][0] == 0
