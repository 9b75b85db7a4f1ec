"""Sentences about tokens are counts of them, and name splits and repeats only where there are any."""

from regard.questions.tokens.sentences import split_words, tokens_findings
from regard.text.tokens import Token


def test_the_numbers_are_counts(minilm) -> None:
    text = "the bank, the tokenisation of riverbanks"
    tokens = minilm.trace(text).tokens
    assert tokens_findings(text, tokens) == [
        "The text's 40 characters are 10 tokens, 4.0 characters each and 2 special ones.",
        "Of 6 words and numbers 2 are split: “riverbanks” into 3 (river ##bank ##s), “tokenisation” into 2 "
        "(token ##isation).",
        "9 of the 10 tokens are different; “the” 2 times.",
        "[CLS] and [SEP] were added by the tokenizer.",
    ]
    assert [len(word) for word in split_words(tokens)] == [3, 2]


def test_nothing_is_split_or_stands_twice(minilm) -> None:
    said = tokens_findings("a river", minilm.trace("a river").tokens)
    assert said[1:3] == ["No word is split.", "No token stands there twice."]


def test_one_token_alone() -> None:
    assert tokens_findings("a", [Token(0, "a", 0, 1, None, False)]) == ["The text's 1 characters are 1 token."]


def test_special_tokens_of_the_text(minilm) -> None:
    said = tokens_findings("a [MASK]", minilm.trace("a [MASK]").tokens)
    assert said[0] == "The text's 8 characters are 1 token and 3 special ones."
    assert said[-1].endswith("[MASK] was read as special, though the text has it.")
