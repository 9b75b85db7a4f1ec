"""Write a text with its tokens, its direction, and which of its tokens are special or attention sinks."""

import unicodedata
from collections.abc import Iterable, Sequence

from regard.text.tokens import Token
from regard.web.score_rules import Data

RIGHT_TO_LEFT = ("R", "AL")  # of Unicode's bidirectional classes: Hebrew and the like, Arabic


def text_data(name: str, text: str, tokens: Sequence[Token], sinks: Iterable[int] = ()) -> Data:
    """Write a text. name: "text 1", "source". sinks: the numbers of the tokens that are attention sinks."""
    return {
        "name": name,
        "text": text,
        "direction": direction(text),
        "tokens": {
            "text": [token.text for token in tokens],
            "start": [token.start for token in tokens],
            "end": [token.end for token in tokens],
            "special": [n for n, token in enumerate(tokens) if token.special],
            "sinks": sorted(sinks),
            "word": [token.word for token in tokens],
        },
    }


def direction(text: str) -> str:
    """Return "rtl" where the first letter of a text is of a script written from right to left, else "ltr"."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in RIGHT_TO_LEFT:
            return "rtl"
        if kind == "L":
            return "ltr"
    return "ltr"
