"""Pairs that are held out share no sentence with those trained on."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard import RegardError
from regard.train.data import Pair, hold_out, read_training_pairs, read_training_texts


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
    with pytest.raises(RegardError, match=r"is no UTF-8: byte 0xff at place 2"):
        read_training_texts([file])
