"""Group tokens to words by the characters of their text, whatever their tokenizer.

Words are those of `regard.text.words`: "river-bank" is "river", "-" and "bank", and "don't" is one word. In scripts
written without blanks every character is a word. A tokenizer's own numbers of words don't help: some have none, and
sentencepiece's may call "river-bank" one word, or a whole text.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import regex

from regard.errors import RegardError
from regard.text.tokens import Token
from regard.text.words import word_boundaries

_MARKS: Any = regex.compile(r"\p{M}*")
LONGEST = 64  # characters of a word; longer ones are no words but codes, whose every token is one


def wordlike(text: str) -> bool:
    """Tell whether a text has a letter or a number in it."""
    return any(map(str.isalnum, text))


def words(tokens: Sequence[Token]) -> list[range]:
    """Group the numbers of tokens to words, in order; every token is of one. A special token is one by itself, and so
    is what is no letter or digit, as full stops are.
    """
    edges = word_boundaries(max((token.source for token in tokens), key=len, default=""))
    starts = [0] if tokens else []
    for number, (before, own) in enumerate(pairwise(tokens), 1):
        overlap = own.start < before.end  # of two tokens that have bytes of one character, or are patches of one image
        shared = range(own.start + 1, before.end) if overlap else range(before.end, own.start + 1)
        if own.special or before.special or not edges.isdisjoint(shared):
            starts.append(number)
    found = [range(start, stop) for start, stop in pairwise([*starts, len(tokens)])]
    fits = [len(spelling(tokens, word)) <= LONGEST for word in found]
    parted = ([word] if one else [range(n, n + 1) for n in word] for word, one in zip(found, fits, strict=True))
    return [part for parts in parted for part in parts]


def spelling(tokens: Sequence[Token], word: Sequence[int]) -> str:
    """Return a word as the text has it; what stands for no characters, as special tokens do, by its tokens' names."""
    first, last = tokens[word[0]], tokens[word[-1]]
    end = _MARKS.match(last.source, last.end).end()  # marks that no token has are of the word
    return last.source[first.start : end].strip() or "".join(tokens[n].text for n in word).strip()


def word_tokens(text: str, numbers: Mapping[str, int]) -> list[Token]:
    """Look up the words of a text, commas dropped. numbers: as `regard.textbook.dictionary` makes them.

    Raises:
        RegardError: a word is not in the dictionary.
    """
    tokens = []
    for place, match in enumerate(re.finditer(r"[^\s,]+(?:,+[^\s,]+)*", text)):
        word = match[0].replace(",", "")
        if word not in numbers:
            raise RegardError(f"the dictionary of {len(numbers)} words has no {word!r}")
        tokens.append(Token(numbers[word], word, *match.span(), place, False, text))
    return tokens
