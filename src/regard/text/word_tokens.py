"""Read a text as the words of a dictionary, as tokens that know their characters."""

import re
from collections.abc import Mapping

from regard.errors import RegardError
from regard.text.tokens import Token


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
