"""Occurrences of a word, their labels, and how they compare."""

import pytest
import torch

from regard import RegardError
from regard.explain.causes.layer_updates import layer_updates
from regard.explain.texts.occurrences import (
    compare_reference,
    compare_two_occurrences,
    find_word_in_texts,
    occurrence_label_in_text,
    occurrences,
    word_updates,
)
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
    assert [row.head for row in river.heads] == list(range(12))
    assert len(river.attends) == 6
    torch.testing.assert_close(torch.tensor(river.attends[2].weights).sum(), torch.tensor(1.0))
    pair = compare_two_occurrences(river, bank[0], money, bank[1])
    assert pair.token_embeddings_equal is True
    assert pair.hidden_states[6] == cosine(
        bank[0].hidden_states[6][river.tokens].mean(0), bank[1].hidden_states[6][money.tokens].mean(0)
    )
    reference = minilm.trace("bank")
    beside = compare_reference(reference, river, bank[0])
    assert (beside.word, beside.occurrence) == ("bank", "1")
    assert beside.token_embeddings == pytest.approx(1)
    assert beside.last_hidden_state < 0.99


def test_the_largest_share_of_another_word_is_of_all_tokens(bank) -> None:
    (own,) = occurrences(bank[1:], [(0, bank[1].word("bank"))], ["1"], None, None, 1)
    found = word_updates(bank[1], own, top=1)
    assert [len(step.attention.top) for step in found.updates] == [1] * 6
    tokens = bank[1].tokens
    steps = layer_updates(bank[1], own.as_word(), top=len(tokens))
    assert [each.attention.top[:1] for each in steps] == [each.attention.top for each in found.updates]
    share, layer, token = max(
        (source.share, step.layer, source.token)
        for step in steps
        for source in step.attention.top
        if not tokens[source.token].special and source.token != 11 and tokens[source.token].text.isalpha()
    )
    assert (found.most.share, found.most.layer, found.most.token) == (share, layer, token)
    without = word_updates(bank[1], own, top=1, sinks=[token])
    assert without.most.token != token
