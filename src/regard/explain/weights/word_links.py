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


def other_words(
    tokens: Sequence[Token], own: Collection[int], sinks: Collection[int] = (), *, alike: bool = True
) -> list[int]:
    """Number the tokens of other words than one: not its own, no sinks, not special, with a letter or a digit.

    What a tokenizer does not know is no word. own, sinks: the numbers of the word's tokens, and of those that are
    attention sinks. alike: False leaves out words that are spelled alike, since many heads look at what is repeated,
    and the other pieces of a word of which its tokens are a part.
    """
    same = set(own)
    if not alike:
        called = spelling(tokens, sorted(own)).casefold()
        for word in words(tokens):
            if not same.isdisjoint(word) or spelling(tokens, word).casefold() == called:
                same.update(word)
    return [
        number
        for number, token in enumerate(tokens)
        if not token.special and number not in same and number not in sinks
        if wordlike(token.characters) and token.text.strip() not in UNKNOWN
    ]
