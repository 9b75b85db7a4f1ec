"""Name tokens that are pieces of words by the words as well."""

from collections.abc import Sequence
from itertools import pairwise

from regard.explain.findings.wording import quoted
from regard.text.tokens import Token

LONGEST = 24  # characters of a word; what stands longer without a blank is a script that has none


def wordlike(text: str) -> bool:
    """Whether a text has a letter or a number in it."""
    return any(map(str.isalnum, text))


def words(tokens: Sequence[Token]) -> list[range]:
    """The numbers of the tokens of each word, in order: pieces that stand together with no blank between them."""
    starts = [0]
    for number, (before, own) in enumerate(pairwise(tokens), 1):
        blank = own.text.startswith(" ") or own.end - own.start > len(own.text.removeprefix("##"))  # in its characters
        together = own.start == before.end and not blank and not (own.special or before.special)
        if not (together and wordlike(before.text) and wordlike(own.text)):
            starts.append(number)
    found = (
        [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(tokens)], strict=True)] if tokens else []
    )
    return [
        part
        for word in found
        for part in ([word] if len(spelling(tokens, word)) <= LONGEST else [range(n, n + 1) for n in word])
    ]


def spelling(tokens: Sequence[Token], word: Sequence[int]) -> str:
    """A word's tokens together, without the mark of pieces that go on with a word."""
    return "".join(tokens[n].text.removeprefix("##") if n > word[0] else tokens[n].text for n in word).strip()


def named(tokens: Sequence[Token], number: int) -> str:
    """A token in a sentence; of a piece, the word that it is of as well."""
    word = next(each for each in words(tokens) if number in each)
    return quoted(tokens[number].text) + (f" of {quoted(spelling(tokens, word))}" if len(word) > 1 else "")
