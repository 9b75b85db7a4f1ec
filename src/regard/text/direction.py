"""Tell in which direction a text is read."""

import unicodedata
from typing import Literal

RIGHT_TO_LEFT = ("R", "AL")  # of Unicode's bidirectional classes: Hebrew and the like, Arabic


def direction(text: str) -> Literal["ltr", "rtl"]:
    """Return "rtl" where the first letter of a text is of a script written from right to left, else "ltr"."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in RIGHT_TO_LEFT:
            return "rtl"
        if kind == "L":
            return "ltr"
    return "ltr"
