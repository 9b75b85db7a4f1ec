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
# English words that say less than content words, so that rankings put links to them last.
_AUXILIARIES = """
am is are was were be been being do does did have has had having can could may might must shall should will would
"""
_PRONOUNS = """
i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours
ourselves they them their theirs themselves this that these those who whom whose which one
"""
_OTHERS = """
a an the some any each every either neither both all such no another other what ones something anything nothing
about above across after against along among around as at before behind below beneath beside between beyond by despite
down during except for from in inside into like near of off on onto out outside over past since than through to toward
towards under until up upon via with within without
and or nor but so yet if because although though while whereas unless when where whether how why then there here
not never only also just even very too more most less least quite rather again once ever still already
"""
PRONOUNS = frozenset(_PRONOUNS.split())
FUNCTION_WORDS = PRONOUNS | {*_AUXILIARIES.split(), *_OTHERS.split(), *(f"{w}n't" for w in _AUXILIARIES.split())}
FUNCTION_WORDS |= {"can't", "won't", "shan't"}


def wordlike(text: str) -> bool:
    """Tell whether a text has a letter or a number in it."""
    return any(map(str.isalnum, text))


def words(tokens: Sequence[Token]) -> list[range]:
    """Group the numbers of tokens to words, in order; every token is of one. A special token is one by itself, and so
    is what is no letter or digit, as full stops are.
    """
    edges = word_boundaries(max((token.source for token in tokens), key=len, default=""))
    starts = [0] if tokens else []
    for number, (before, token) in enumerate(pairwise(tokens), 1):
        overlap = token.start < before.end  # two tokens have bytes of one character, or are patches of one image
        shared = range(token.start + 1, before.end) if overlap else range(before.end, token.start + 1)
        if token.special or before.special or not edges.isdisjoint(shared):
            starts.append(number)
    spans = [range(start, stop) for start, stop in pairwise([*starts, len(tokens)])]
    fits = [len(spelling(tokens, word)) <= LONGEST for word in spans]
    parted = ([word] if one else [range(n, n + 1) for n in word] for word, one in zip(spans, fits, strict=True))
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


def is_content_word(word: str) -> bool:
    """Tell whether a word has a letter or a digit and is no English function word."""
    return word.strip().casefold().replace("’", "'") not in FUNCTION_WORDS and any(map(str.isalnum, word))
