"""Sentences about tokens have the counts of the tokens, and name a split word only if a word is split."""

import pytest

from regard.questions.tokens.answer import Tokens, tokens
from tests.said.reading import names_in, numbers_in, shown_with_its_numbers


def test_the_numbers_are_counts(minilm) -> None:
    text = "the bank, the tokenisation of riverbanks"
    answer = Tokens("a model", [(text, minilm.trace(text).tokens)])
    split, count = answer.findings()
    assert (numbers_in(split)[:2], names_in(split)) == (["2", "6"], ["riverbanks"])
    assert "(river ##bank ##s)" in split
    assert numbers_in(count) == ["10", "40"]
    assert all(token in count for token in ("[CLS]", "[SEP]"))
    shown_with_its_numbers(answer, also=[2, 6, 10, 40])


@pytest.mark.parametrize(("text", "numbers"), [("a river", [["2"], ["2", "7"]]), ("a", [["1", "1"]])])
def test_nothing_is_split(minilm, text: str, numbers: list[list[str]]) -> None:
    said = Tokens("a model", [(text, minilm.trace(text).tokens)]).findings()
    assert [numbers_in(sentence) for sentence in said] == numbers
    assert names_in(" ".join(said)) == []


def test_a_special_token_of_the_text_is_not_added(minilm) -> None:
    text = "riverbanks [MASK]"
    split, count, read = Tokens("a model", [(text, minilm.trace(text).tokens)]).findings()
    assert names_in(split) == ["riverbanks"]
    assert numbers_in(count) == ["4", "17"]
    assert "[MASK]" in read
    assert "[MASK]" not in count


def test_several_texts_have_a_sentence_each() -> None:
    answer = tokens(["a b", "b a c", "a", "b b"], "words")
    said = answer.findings()
    assert [numbers_in(sentence) for sentence in said] == [["1", "2", "3", "0", "2"], ["2", "3", "5", "0", "3"],
                                                          ["3", "1", "1"]]  # fmt: skip
    shown_with_its_numbers(answer, also=[0, 1, 2, 3, 5])
