"""Group tokens to words by what the text shows: letters that stand together, and blanks between.

A tokenizer's own numbers of words are no help where it has none, or counts a whole text as one word, as sentencepiece's
do.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

from regard.text.tokens import Token

LONGEST = 24  # characters of a word; what stands longer without a blank is a script that has none


def wordlike(text: str) -> bool:
    """Whether a text has a letter or a number in it."""
    return any(map(str.isalnum, text))


def blank_before(before: Token, own: Token) -> bool:
    """Whether there is a blank between two tokens that follow each other, in their texts or only in their places."""
    within = own.text.startswith(" ") or own.end - own.start > len(own.text.removeprefix("##"))
    return within or own.start != before.end


def words(tokens: Sequence[Token]) -> list[range]:
    """The numbers of the tokens of each word, in order: pieces that stand together with no blank between them."""
    found = _cut(tokens, lambda before, own: wordlike(before.text) and wordlike(own.text))
    return [part for word in found for part in ([word] if _fits(tokens, word) else [range(n, n + 1) for n in word])]


def runs(tokens: Sequence[Token]) -> list[range]:
    """The numbers of the tokens between two blanks, in order: a word with the marks and words that touch it.

    Of a script without blanks, and of what is as long, its `words`.
    """
    found = _cut(tokens, lambda before, own: True)
    return [
        part
        for run in found
        for part in (
            [run]
            if _fits(tokens, run)
            else [range(run[0] + word[0], run[0] + word[-1] + 1) for word in words([tokens[n] for n in run])]
        )
    ]


def spelling(tokens: Sequence[Token], word: Sequence[int]) -> str:
    """A word's tokens together, without the mark of pieces that go on with a word."""
    return "".join(tokens[n].text.removeprefix("##") if n > word[0] else tokens[n].text for n in word).strip()


def _cut(tokens: Sequence[Token], joins: Callable[[Token, Token], bool]) -> list[range]:
    """Cut tokens where a blank or a special token stands between two, or where they do not join."""
    starts = [0]
    for number, (before, own) in enumerate(pairwise(tokens), 1):
        if blank_before(before, own) or own.special or before.special or not joins(before, own):
            starts.append(number)
    ends = [*starts[1:], len(tokens)]
    return [range(start, stop) for start, stop in zip(starts, ends, strict=True)] if tokens else []


def _fits(tokens: Sequence[Token], word: Sequence[int]) -> bool:
    return len(spelling(tokens, word)) <= LONGEST
