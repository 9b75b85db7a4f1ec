"""Pairs that are held out share no sentence with those trained on."""

import json
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard import RegardError
from regard.explain.weights.head_means import repeated_tokens
from regard.explain.weights.head_scores import head_scores
from regard.train.data import (
    IGNORED,
    LETTERS,
    LINE,
    PERIODS,
    NextToken,
    Pair,
    PairBatches,
    hold_out,
    read_training_pairs,
    read_training_texts,
    repeated_training_line,
    repeated_training_text,
)
from tests.support import in_one_process


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=5, max_size=120), st.integers(1, 9))
def test_no_sentence_stands_on_both_sides(edges: list[tuple[int, int]], count: int) -> None:
    pairs = [Pair(f"s{a}", f"t{b}") for a, b in dict.fromkeys(edges)]
    pairs += [Pair(f"alone {n}", f"seul {n}") for n in range(count + 1)]  # so that there is enough to hold out
    training, held = hold_out(pairs, count, seed=3)
    assert len(held) == count
    assert len({p.source for p in held}) == len({p.target for p in held}) == count
    assert not {p.source for p in training} & {p.source for p in held}
    assert not {p.target for p in training} & {p.target for p in held}
    assert set(training) | set(held) <= set(pairs)
    assert hold_out(pairs, count, seed=3) == (training, held)


def test_too_few_to_hold_out() -> None:
    together = [Pair("one", f"t{n}") for n in range(20)]
    with pytest.raises(RegardError, match="1 pairs cannot be held out of 20, 0 small groups"):
        hold_out(together, 1, seed=3)


def test_pairs_are_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_bytes("\ufeffGo.\tVa !\tsome licence\r\n\nHi.\tSalut.\nGo.\tVa !\n".encode())
    assert read_training_pairs(file) == [Pair("Go.", "Va !"), Pair("Hi.", "Salut.")]


def test_an_undecodable_byte_is_named(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes("é".encode() + b"\xff")
    with pytest.raises(RegardError, match=r"isn't UTF-8: byte 0xff at position 2"):
        read_training_texts([file])


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


def test_blocks_are_labelled_with_the_next_token() -> None:
    ids = torch.arange(1000)
    data = NextToken(ids, block=17, batch=5, held_out=0.1, seed=3)
    batch, after = data.batch((0, 7))
    assert batch.ids.shape == (5, 17)
    assert after == (0, 8)
    assert torch.equal(batch.labels, batch.ids + 1)
    assert int(batch.labels.max()) < 900
    again, _ = NextToken(ids, block=17, batch=5, held_out=0.1, seed=3).batch((0, 7))
    assert torch.equal(batch.ids, again.ids)
    assert not torch.equal(batch.ids, data.batch((0, 8))[0].ids)
    held = torch.cat([each.ids.flatten() for each in data.validation()])
    assert torch.equal(held, torch.arange(900, 900 + len(held)))
    assert len(held) > 100 - 2 * 17


def pairs(count: int) -> list[tuple[list[int], list[int]]]:
    return [([10 + n] * (1 + n % 7) + [1], [500 + n] * (1 + n % 5) + [1]) for n in range(count)]


def test_every_pair_comes_once_a_time_round() -> None:
    data = PairBatches(pairs(211), pairs(13), start=0, filler=2, batch=50, seed=5)
    place, seen, orders = (0, 0), Counter(), []
    while place[0] < 2:
        if place[1] == 0:
            seen, order = Counter(), []
            orders.append(order)
        batch, place = data.batch(place)
        assert batch.source is not None
        assert batch.source.numel() <= 50 or len(batch.source) == 1
        assert batch.ids.numel() <= 50 or len(batch.ids) == 1
        seen.update(batch.source[:, 0].tolist())
        order.extend(batch.source[:, 0].tolist())
        assert bool((batch.ids[:, 0] == 0).all())
        real = batch.labels != IGNORED
        assert torch.equal(real, batch.mask)
        assert torch.equal(batch.ids[:, 1:][real[:, 1:]], batch.labels[:, :-1][real[:, 1:]])
        assert batch.tokens == int(real.sum())
        if place[1] == 0:
            assert seen == Counter(range(10, 221))
    assert orders[0] != orders[1]


def test_the_rows_of_a_team_are_all_of_them() -> None:
    data = PairBatches(pairs(37), pairs(3), start=0, filler=2, batch=90, seed=5)
    batch, _ = data.batch((0, 0))
    parts = [batch.rows_of_process(rank, 2) for rank in (0, 1)]
    assert sum(part.tokens for part in parts) == batch.tokens
    alone = batch.rows_of_process(0, len(batch.ids))
    assert [alone.rows_of_process(rank, 2).tokens for rank in (0, 1)] == [alone.tokens, 0]


def test_texts_that_are_too_short() -> None:
    with pytest.raises(RegardError, match="a block of 17 needs 18"):
        NextToken(torch.arange(30), block=17, batch=5, held_out=0.1, seed=3)
    with pytest.raises(RegardError, match="expected a fraction between 0 and 1"):
        NextToken(torch.arange(300), block=17, batch=5, held_out=2.0, seed=3)
    with pytest.raises(RegardError, match="the longest sentence has 8"):
        PairBatches(pairs(37), pairs(3), start=0, filler=2, batch=7, seed=5)
