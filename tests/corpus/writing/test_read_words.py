"""Some windows of a shard are read twice, from all over it, and compared token by token."""

import math

import torch

from regard.corpus.closeness import PARTS
from regard.corpus.writing import read_words
from regard.corpus.writing.read_words import StateComparison, closeness_of_states
from regard.models.model import Model
from regard.models.states import StateBatch, Window, read_states


def test_cosines_of_turned_vectors() -> None:
    """Vectors that are turned by known angles, in a plane; the one before each stands at a right angle to it."""
    angles = torch.tensor([0.0, 0.01, 0.03], dtype=torch.float64)
    right = torch.arange(3, dtype=torch.float64) * math.pi / 2
    expected = torch.stack([right.cos(), right.sin()], -1)[None]
    found = torch.stack([(right + angles).cos(), (right + angles).sin()], -1)[None] * 7
    closeness = closeness_of_states(found, expected)
    below = [round((1 - math.cos(angle)) * PARTS) for angle in angles.tolist()]
    assert (closeness.states, closeness.off, closeness.most) == (3, sum(below), max(below))
    assert (closeness.pairs, closeness.following) == (2, 2 * PARTS)
    alone = closeness_of_states(found[:, :1], expected[:, :1])
    assert (alone.states, alone.pairs, alone.following) == (1, 0, 0)


def test_windows_from_all_over(minilm: Model, monkeypatch: object) -> None:
    tokens = minilm.tokenizer
    windows = [Window(tokens(f"the bank number {n}")["input_ids"], None) for n in range(137)]
    comparison = StateComparison(minilm, windows, [2, 5])
    read = list(comparison._expected)
    assert read_words.TOKENS / 2 < sum(len(windows[n].ids) for n in read) <= read_words.TOKENS
    assert max(b - a for a, b in zip([0, *read], [*read, len(windows)], strict=True)) <= 3
    doubled = (
        StateBatch(batch.numbers, 2 * batch.states, batch.maps) for batch in read_states(minilm, windows, [2, 5])
    )
    seen = [number for batch in comparison.seen(doubled) for number in batch.numbers]
    assert sorted(seen) == list(range(137))
    assert comparison.found.states == 2 * sum(len(windows[n].ids) for n in read)
    assert comparison.found.most < 10  # a vector's length is nothing to its cosine
    assert comparison.found.following > 0.2 * PARTS * comparison.found.pairs
