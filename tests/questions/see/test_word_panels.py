"""Every number of a word's tables is the summary's."""

import pytest
import torch

from regard.explain.vectors.neutral import Neutral
from regard.explain.vectors.static_words import static_words
from regard.questions.see.answer import seen
from regard.questions.see.word_panels import (
    VALUES,
    across,
    attends,
    cosines,
    looks,
    neutral_range_in_words,
    states,
    static_bars,
    token_embeddings,
    updates,
)
from regard.questions.see.word_panels import static as static_table


def test_the_numbers(bank) -> None:
    summary = seen(bank, "bank").summary
    first, pair = summary.occurrences[0], summary.pairs[0]
    alike = cosines(summary, "text", "")
    assert [row[1] for row in alike.rows] == [pair.token_embeddings, *pair.hidden_states]
    rows = states(summary, "text", "").rows
    assert len(rows) == len(first.hidden_states) * len(summary.occurrences)
    assert rows[0][2] == " ".join(f"{each:z.4f}" for each in first.hidden_states[0][:VALUES]) + " …"
    assert abs(rows[0][3] ** 2 - sum(x * x for x in first.hidden_states[0])) < 1e-6
    labels = [each.label for each in summary.occurrences]
    assert [row[0] for row in token_embeddings(summary, "text", "").rows] == labels
    by_layer = attends(summary, first, "text", "")
    for row, own in zip(by_layer.rows, first.attends, strict=True):
        assert row[1] == own.special
        assert [value for _, value in row[2].parts[row[2].apart :]] == [share.weight for share in own.top]


def test_shares_of_a_step_sum_to_one(bank) -> None:
    summary = seen(bank, "bank").summary
    panel = updates(summary.layer_updates[0], summary, "text", None, "")
    for row, step in zip(panel.rows, summary.layer_updates[0].updates, strict=True):
        assert row[1] == step.length
        assert abs(row[2] + row[3] - 1) < 1e-5
        assert [value for _, value in row[4].parts] == [each.share for each in step.attention.top]


def test_bars_of_static_vectors_are_their_cosines() -> None:
    generator = torch.Generator().manual_seed(5)
    vectors = {word: torch.randn(7, generator=generator) for word in ("bank", "money", "river")}
    static = static_words(vectors, "bank", ["money", "river", "unknown"], "a file")
    bars = static_bars(static)
    assert "“bank” of static vectors (a file)" in bars.title
    largest = sorted(static.words[1:3], key=lambda each: -each.cosine)  # the first is the nearest
    assert bars.parts == [(each.word, pytest.approx(each.cosine)) for each in largest]
    rows = static_table(static).rows  # type: ignore[attr-defined]
    assert rows[-1] == ["unknown", "has no vector"]


def test_ranges_and_tables() -> None:
    neutral = Neutral("river", 12, [0.1, 0.34], [0.0, 0.285], [0.2, -0.0001])
    assert neutral_range_in_words(neutral) == "0.34 (0.28 to 0.00)"
    assert neutral_range_in_words(Neutral("river", 12, [None], [None], [None])) == "– (– to –)"


def test_the_numbers_are_the_alignments(tiny_pair) -> None:
    pair = tiny_pair.trace("the man on the river bank", target="un homme sur la rive")
    summary = seen([pair], "bank").summary
    (found,) = summary.target.alignments
    panel = looks(found, summary, screen=True)
    assert f"(layer {found.read_layer})" in panel.columns[2].name
    for row, own in zip(panel.rows, found.tokens, strict=True):
        assert row[0] == own.text
        assert (row[1] is None) == (own.written is None)
        assert [weight for _, weight in row[2].parts] == [share.weight for share in own.read.top[:2]]
        assert row[2].mark == "*" * (own.read.apart > 0.5)
    (table,) = across(summary, summary.target)
    assert table.title.startswith("Target tokens that attend to “bank” of text 1")
    for row, read in zip(table.rows, summary.target.to_words[0].read, strict=True):
        assert [weight for _, weight in row[2].parts] == [share.weight for share in read.top[:3]]
