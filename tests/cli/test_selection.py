"""What a verb looks at, checked without a model."""

import pytest

from regard.cli.selection import Selection
from regard.errors import RegardError


@pytest.mark.parametrize(
    ("chosen", "opened", "says"),
    [
        (Selection(top=0), False, "--top: given 0, needs 1 or more"),
        (Selection(word=" "), False, "--word is empty: give a word of the text"),
        (Selection(references="a"), False, "--compare needs --word: it compares that word with others"),
        (Selection(word="bank", references="a"), True, "--compare needs the model, to read its words"),
        (Selection(word="bank", references="a, ,b"), False, "--compare 'a, ,b': needs words separated by commas"),
        (Selection(word="bank", references=""), False, "--compare '': needs words separated by commas, one is empty"),
    ],
)
def test_what_is_refused(chosen: Selection, opened: bool, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        chosen.check(opened=opened)


def test_what_is_not() -> None:
    Selection().check()
    Selection(-1, -1, 1, "bank").check(opened=True)
    Selection(word="bank", references="a,b").check()


def test_reference_words_are_each_once_and_in_their_order() -> None:
    assert Selection().reference_words == []
    assert Selection(word="bank", references="river, money,river").reference_words == ["river", "money"]


@pytest.mark.parametrize("word", [None, "", "  "])
def test_a_word_that_is_needed(word: str | None) -> None:
    with pytest.raises(RegardError, match="--word is needed: a word of the text"):
        Selection(word=word).needed_word()
    assert Selection(word="bank").needed_word() == "bank"
