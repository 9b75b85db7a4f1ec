"""Sentences about a layer's matrix are its numbers, and say nothing that these do not bear."""

from dataclasses import replace

import pytest

from regard.questions.map.answer import HeadFigures, Matrix
from regard.questions.map.sentences import of_matrix as matrix_findings
from regard.questions.map.whole import matrix
from regard.questions.map.windowed import windowed
from tests.support import RIVER


@pytest.fixture
def found(bank) -> Matrix:
    return matrix(bank[0], 2, far=4)


def test_the_numbers_are_the_matrixs(found: Matrix) -> None:
    said = matrix_findings(found)
    heads = found.heads
    mean = sum(head.distance for head in heads) / len(heads)
    furthest = max(heads, key=lambda head: head.distance)
    assert said[0].startswith(f"In layer 2 a token looks {mean:.1f} tokens away on average")
    assert f"furthest in head {furthest.head} ({furthest.distance:.1f})" in said[0]
    sharpest = min(heads, key=lambda head: head.entropy)
    assert said[1].startswith(f"Head {sharpest.head} is the sharpest")
    special = sum(head.special for head in heads) / len(heads)
    assert said[2].startswith(f"Special tokens take {special:.0%} (")
    first = next(each for each in found.receivers if not each.special and not each.sink)
    assert f"“{first.place.text}” (token {first.place.token})" in said[3]
    assert f"{first.received:.1f} times" in said[3]
    pair = found.pairs[0]
    assert f"{pair.weight:.2f} in head {pair.head}" in said[4]
    assert f"{pair.distance} tokens {'ahead' if pair.key.token > pair.query.token else 'back'}" in said[4]


def test_one_head_is_not_compared(bank) -> None:
    said = matrix_findings(matrix(bank[0], 2, 3, far=4))
    assert said[0].startswith("In head 3 of layer 2 a token looks ")
    assert not any("sharpest" in sentence or "furthest" in sentence for sentence in said)


def test_nothing_is_far_in_a_short_text(bank) -> None:
    assert matrix_findings(matrix(bank[0], 2))[-1] == (
        "Special tokens and sinks aside, no token looks at one more than 64 tokens away."
    )


def test_equal_heads_and_no_special_tokens(found: Matrix) -> None:
    alike = [HeadFigures(n, 0.0, 2.0, 0.0, 0.0, 0.0) for n in range(3)]
    plain = [replace(each, received=1.2, special=False, sink=False) for each in found.receivers]
    said = matrix_findings(replace(found, heads=alike, receivers=plain))
    assert said[:2] == [
        "In layer 2 a token looks 2.0 tokens away on average.",
        "All its heads spread their weight alike, as equal weights over 1.0 tokens would.",
    ]
    assert said[2].startswith("No token stands out: the largest receiver, ")
    assert not any("of all attention" in sentence for sentence in said)


def test_only_special_tokens_receive(found: Matrix) -> None:
    apart = [replace(each, special=True) for each in found.receivers]
    assert not any("receives most" in sentence for sentence in matrix_findings(replace(found, receivers=apart)))


def test_sinks_are_said_apart(found: Matrix) -> None:
    heads = [replace(head, special=0.1, sink=0.25, sink_tokens=0.3) for head in found.heads]
    assert matrix_findings(replace(found, heads=heads))[2] == (
        "Special tokens take 10% and attention sinks among the tokens take 30% and a sink that the heads have learned, "
        "no token, takes 25% of all attention."
    )


def test_within_windows(minilm) -> None:
    read = minilm.trace(RIVER * 3, window=12, layers=[2])
    found = windowed(read.plan, read.windows, 2, far=40)
    assert matrix_findings(found)[-1].endswith("more than 40 tokens away within its window.")
    near = windowed(read.plan, read.windows, 2, far=4)
    said = "The strongest link over more than 4 tokens within a window, special tokens and sinks aside: "
    assert matrix_findings(near)[-1].startswith(said)
