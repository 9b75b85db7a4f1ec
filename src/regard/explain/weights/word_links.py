"""A word's link to another word, and the tokens that it can be to: those of other words."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from regard.text.tokens import Token
from regard.text.word_pieces import spelling, wordlike, words

UNKNOWN = ("[UNK]", "<unk>")  # how vocabularies spell what they do not know


@dataclass(frozen=True)
class WordLink:
    """A token of another word, the weight that a word gives it in one head, and that head.

    weight: a part of 1. others: what is expected, the larger of what others give at that distance and to that token.
    """

    layer: int
    head: int
    token: int
    text: str
    weight: float
    others: float


def other_words(tokens: Sequence[Token], own: Collection[int], sinks: Collection[int] = ()) -> list[int]:
    """Number the tokens of other words than one: not its own, no sinks, not special, with a letter or a digit.

    What a tokenizer does not know is no word. own, sinks: the numbers of the word's tokens, and of those that are
    attention sinks.
    """
    return [
        number
        for number, token in enumerate(tokens)
        if not token.special and number not in own and number not in sinks
        if wordlike(token.text) and token.text.strip() not in UNKNOWN
    ]


def different_words(tokens: Sequence[Token], own: Sequence[int], sinks: Collection[int] = ()) -> list[int]:
    """Number the tokens of words that are spelled otherwise than one: many heads look at what is repeated.

    Nor are the other pieces of a word different, of which its tokens are a part.
    """
    called = spelling(tokens, own).casefold()
    same = {
        n
        for word in words(tokens)
        if not set(word).isdisjoint(own) or spelling(tokens, word).casefold() == called
        for n in word
    }
    return [number for number in other_words(tokens, own, sinks) if number not in same]
