"""Occurrences of a word, their labels, and how they compare."""

import pytest
import torch

from regard import RegardError
from regard.explain.texts.occurrences import compare, compare_reference, find, lettered, occurrences
from regard.explain.vectors.similarity import cosine


def test_letters_where_a_word_is_repeated() -> None:
    assert lettered("2", 0, 1) == "2"
    assert [lettered("1", n, 99) for n in (0, 25, 26, 51, 52, 701, 702)] == [
        "1a", "1z", "1aa", "1az", "1ba", "1zz", "1aaa"
    ]  # fmt: skip


def test_the_text_without_the_word_is_named(bank) -> None:
    with pytest.raises(RegardError, match="text 2: word 'river' is not in"):
        find(bank, "river")
    assert [(number, len(words)) for number, words in find(bank, "bank")] == [(0, 1), (1, 1)]


def test_two_occurrences_state_by_state(minilm, bank) -> None:
    river, money = occurrences(bank, find(bank, "bank"), ["1", "2"], 3, None, 5)
    assert (river.label, money.label, river.text, money.text) == ("1", "2", 0, 1)
    assert [row.head for row in river.heads] == list(range(12))
    assert len(river.attends) == 6
    torch.testing.assert_close(torch.tensor(river.attends[2].weights).sum(), torch.tensor(1.0))
    pair = compare(river, bank[0], money, bank[1])
    assert pair.learned_equal is True
    assert pair.hidden_states[6] == cosine(
        bank[0].hidden_states[6][river.tokens].mean(0), bank[1].hidden_states[6][money.tokens].mean(0)
    )
    reference = minilm.trace("bank")
    beside = compare_reference(reference, river, bank[0])
    assert (beside.word, beside.occurrence) == ("bank", "1")
    assert beside.learned == pytest.approx(1)
    assert beside.contextual < 0.99
