"""The neutral sentences: those of the package, with a word put in, or a person's own."""

import re

import pytest

from regard import RegardError
from regard.text.neutral_sentences import MIN_SENTENCES, SENTENCES, SLOT, neutral_sentences
from regard.text.words import words_of


def test_those_of_the_package_have_one_place_first_last_and_between() -> None:
    assert len(SENTENCES) == len(set(SENTENCES)) == 39 >= MIN_SENTENCES
    assert all(sentence.count(SLOT) == 1 for sentence in SENTENCES)
    places = [sentence.split().index(next(w for w in sentence.split() if SLOT in w)) for sentence in SENTENCES]
    last = sum(SLOT + "." in sentence or SLOT + "?" in sentence for sentence in SENTENCES)
    assert {0, 1, 2, 3, 4, 5} <= set(places)
    assert 6 <= last <= 24
    # no article that depends on the word, and nothing of what benchmarks hold against them
    assert not any(re.search(r"\ban? \{\}", sentence) for sentence in SENTENCES)
    told = {word.casefold() for sentence in SENTENCES for word in words_of(sentence)}
    assert not told & {"river", "money", "loan", "deposit", "water", "stream", "cash"}


def test_the_word_goes_in_as_it_is_spelled() -> None:
    assert neutral_sentences("New York")[1] == "She asked him about the New York."
    assert neutral_sentences("bank", ["My Bank is here.", "A {}."]) == ["My Bank is here.", "A bank."]
    with pytest.raises(RegardError, match=r"control: sentence 2, 'A house.', has neither 'bank' nor \{\} in its place"):
        neutral_sentences("bank", ["A {}.", "A house."])
    with pytest.raises(RegardError, match="neutral_sentences: got ' ', expected a word"):
        neutral_sentences(" ")
    with pytest.raises(RegardError, match="control: got str, expected a list of sentences"):
        neutral_sentences("bank", "A {}.")
