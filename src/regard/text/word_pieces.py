"""Group tokens to words by what the text shows, the one way in which all that speaks of words does.

A word ends where letters and digits end, as it does for `regard.text.words.find_word` and in a store: "river-bank" is
"river", "-" and "bank". Of scripts that are written without blanks every token is a word. A tokenizer's own numbers of
words are no help: some have none, sentencepiece's may call "river-bank" one word, or a whole text.
"""

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from regard.text.tokens import Token
from regard.text.words import word_may_end_between

LONGEST = 64  # characters of a word; longer ones are no words but codes, whose every token is one


def wordlike(text: str) -> bool:
    """Tell whether a text has a letter or a number in it."""
    return any(map(str.isalnum, text))


def _blank_before(before: Token, own: Token) -> bool:
    """Whether there is a blank between two tokens that follow each other, in their texts or only in their places."""
    if _of_one_character(before, own):
        return False
    within = own.text.startswith(" ") or own.end - own.start > len(own.text.removeprefix("##"))
    return within or own.start != before.end


def words(tokens: Sequence[Token]) -> list[range]:
    """Group the numbers of tokens to words, in order; every token is of one. A special token is one by itself, and so
    is what is no letter or digit, as full stops are.
    """
    starts = [0] if tokens else []
    for number, (before, own) in enumerate(pairwise(tokens), 1):
        if _blank_before(before, own) or own.special or before.special or not _of_one_word(before, own):
            starts.append(number)
    found = [range(start, stop) for start, stop in pairwise([*starts, len(tokens)])]
    fits = [len(spelling(tokens, word)) <= LONGEST for word in found]
    parted = ([word] if one else [range(n, n + 1) for n in word] for word, one in zip(found, fits, strict=True))
    return [part for parts in parted for part in parts]


def spelling(tokens: Sequence[Token], word: Sequence[int]) -> str:
    """Return a word's tokens together, without the mark of pieces that go on with a word."""
    return "".join(tokens[n].text.removeprefix("##") if n > word[0] else tokens[n].text for n in word).strip()


def _of_one_word(before: Token, own: Token) -> bool:
    """Whether no word ends between two tokens with no blank between them; a mark belongs to the letter before it."""
    if _of_one_character(before, own):
        return True
    ends, begins = before.text[-1:], own.text.removeprefix("##")[:1]
    if not ends or not begins:
        return False
    return unicodedata.category(begins).startswith("M") or not word_may_end_between(ends, begins)


def _of_one_character(before: Token, own: Token) -> bool:
    """Whether two tokens are parts of one character, of its bytes for example: their places overlap."""
    return own.start < before.end


def word_text(text: str, tokens: Sequence[Token], numbers: Sequence[int]) -> str:
    """Return a word as the text has it; a special token by its own name."""
    first, last = tokens[numbers[0]], tokens[numbers[-1]]
    return text[first.start : last.end].strip() or "".join(tokens[n].text for n in numbers).strip()
