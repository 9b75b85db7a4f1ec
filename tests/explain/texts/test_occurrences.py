"""Occurrences of a word, their labels, and how they compare."""

from dataclasses import replace

import pytest
import torch

from regard import RegardError
from regard.explain.causes.layer_updates import layer_updates
from regard.explain.texts.occurrences import (
    compare_occurrences,
    compare_reference,
    find_word_in_texts,
    occurrence_label_in_text,
    occurrences,
    unfold_texts_to_windows,
    word_updates,
)
from regard.explain.texts.summary import summarise
from regard.explain.vectors.similarity import cosine


def test_letters_where_a_word_is_repeated() -> None:
    assert occurrence_label_in_text("2", 0, 1) == "2"
    assert [occurrence_label_in_text("1", n, 99) for n in (0, 25, 26, 51, 52, 701, 702)] == [
        "1a", "1z", "1aa", "1az", "1ba", "1zz", "1aaa"
    ]  # fmt: skip


def test_the_text_without_the_word_is_named(bank) -> None:
    with pytest.raises(RegardError, match="text 2: word 'river' is not in"):
        find_word_in_texts(bank, "river")
    assert [(number, len(words)) for number, words in find_word_in_texts(bank, "bank")] == [(0, 1), (1, 1)]


def test_two_occurrences_state_by_state(minilm, bank) -> None:
    river, money = occurrences(bank, find_word_in_texts(bank, "bank"), ["1", "2"], 3, None, 5)
    assert (river.label, money.label, river.text, money.text) == ("1", "2", 0, 1)
    assert ([row.head for row in river.heads], len(river.attends)) == ([*range(12)], 6)
    torch.testing.assert_close(torch.tensor(river.attends[2].weights).sum(), torch.tensor(1.0))
    normed = [replace(trace, last_hidden_state=trace.last_hidden_state.flip(1) ** 3) for trace in bank]
    (pair,) = compare_occurrences([river, money], normed)
    assert pair.token_embeddings_equal is True
    states = [trace.hidden_states[5] for trace in bank], [trace.last_hidden_state for trace in normed]
    assert pair.hidden_states[5:] == [cosine(a[river.tokens].mean(0), b[money.tokens].mean(0)) for a, b in states]
    reference = minilm.trace("bank")
    beside = compare_reference(reference, river, bank[0])
    assert (beside.word, beside.occurrence, beside.token_embeddings) == ("bank", "1", pytest.approx(1))
    assert beside.last_hidden_state < 0.99


def test_the_largest_share_of_another_word_is_of_all_tokens(bank) -> None:
    (own,) = occurrences(bank[1:], [(0, bank[1].word("bank"))], ["1"], None, None, 1)
    (found,) = word_updates(bank[1], [own], top=1)
    assert [len(step.attention.top) for step in found.updates] == [1] * 6
    tokens = bank[1].tokens
    steps = layer_updates(bank[1], own.as_word(), top=len(tokens))
    for step, update in zip(steps, found.updates, strict=True):
        (source,), (largest, *_) = update.attention.top, step.attention.top
        assert (source.token, source.text) == (largest.token, largest.text)
        assert (source.share, source.length) == pytest.approx((largest.share, largest.length), rel=1e-12)
    share, layer, token = max(
        (source.share, step.layer, source.token)
        for step in steps
        for source in step.attention.top
        if not tokens[source.token].special and source.token != 11 and tokens[source.token].text.isalpha()
    )
    assert (found.most.share, found.most.layer, found.most.token) == (share, layer, token)
    (without,) = word_updates(bank[1], [own], top=1, sinks=[token])
    assert without.most.token != token


TEXT = "the man went to the river bank and then " * 6 + "to the old bank of the town"


@pytest.fixture(scope="module")
def long(minilm):
    return minilm.trace(TEXT, window=20)


def test_every_occurrence_is_in_one_window_and_says_which(long) -> None:
    found = unfold_texts_to_windows([long], "bank")
    assert sum(len(words) for _, words in found.found) == 7
    summary = summarise(found.traces, "bank", unfolded=found)
    assert len(summary.occurrences) == 7
    assert summary.labels == [f"1.{each.window + 1}" for each in summary.windows]
    for occurrence in summary.occurrences:
        assert occurrence.label.startswith(summary.labels[occurrence.text])
        window = summary.windows[occurrence.text]
        trace = long.windows[window.window]
        assert [trace.tokens[n].text for n in occurrence.tokens] == ["bank"]
        assert summary.texts[occurrence.text] == trace.text
    starts = sorted(
        summary.windows[o.text].start + token - 1 for o in summary.occurrences for token in o.tokens
    )  # numbers in the whole text: one special token stands before each window
    assert starts == [token for word in long.word("bank") for token in word.tokens]


def test_without_a_word_all_windows_are_shown(long) -> None:
    found = unfold_texts_to_windows([long, long], None)
    assert [(each.text, each.window) for each in found.windows] == [
        (text, n) for text in range(2) for n in range(len(long.windows))
    ]
    assert summarise(found.traces[:2], unfolded=None).labels == ["1", "2"]


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_windowed_traces_are_not_taken_for_texts(long) -> None:
    with pytest.raises(RegardError, match="got WindowedTrace, expected traces: for a text read in windows"):
        summarise([long], "bank")
    with pytest.raises(RegardError, match="got no traces, expected traces"):
        summarise([])


def test_a_word_that_is_nowhere_is_refused(long, minilm) -> None:
    with pytest.raises(RegardError, match="text 2: word 'bank' is not in the text"):
        unfold_texts_to_windows([long, minilm.trace("the old town", window=20)], "bank")
