"""Quote a word or a token of a text in a sentence: one way, “bank”, wherever one is named.

Error messages quote a wrong value as Python writes it: 'bank'.
"""

import unicodedata
from collections.abc import Sequence
from typing import Literal

MARKS = {"\n": "↵", "\xa0": "⍽"}  # what stands for a line break and for a no-break space


# What stands for the control characters, one character each, so that places in a text stay: ASCII's by their pictures;
# the next 32, which no font shows, and those that turn the direction of all that follows by the sign of a substitute.
TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))  # Unicode's Bidi_Control
BLANKS = "\t\n\r"
PICTURES = {n: 0x2400 + n for n in range(32) if chr(n) not in BLANKS} | {127: 0x2421}
PICTURES |= dict.fromkeys((*range(0x80, 0xA0), *TURNING), 0x2426)
RIGHT_TO_LEFT = ("R", "AL")  # of Unicode's bidirectional classes: Hebrew and the like, Arabic


def quoted(text: str) -> str:
    """Write a word or token in a sentence, printable, the blanks at its ends left away; blanks alone are called so."""
    return f"“{visible(text.strip())}”" if text.strip() else "a line break" if "\n" in text else "a blank"


def some_of(names: Sequence[str], most: int) -> str:
    """Return the first of some names, and the number of more: "a, b and 3 more"."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def visible(text: str) -> str:
    """Write out what can't be printed in a text, so that a terminal obeys nothing in it; a line break as ↵."""
    return "".join(
        MARKS.get(c, c) if c.isprintable() or c in MARKS else c.encode("unicode_escape").decode() for c in text
    )


def short(text: str, most: int = 24) -> str:
    """Make a text printable, and shorten a long one, with … at its end."""
    text = visible(text)
    text = text if text.strip(" ") else "␣" * len(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def display_text(text: str, most: int = 24) -> str:
    """Write a token as every view shows it: blanks at its ends by a mark, since " bank" and "bank" are two tokens."""
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" "))
    return short("␣" * before + inner + "␣" * (len(text) - before - len(inner)), most)


def text_with_control_pictures(text: str) -> str:
    """Write a text in which no character is unseen or turns the others round, as long as it was; blanks stay."""
    return text if text.isascii() and text.isprintable() else text.translate(PICTURES)


def direction(text: str) -> Literal["ltr", "rtl"]:
    """Return "rtl" where the first letter of a text is of a script written from right to left, else "ltr"."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in RIGHT_TO_LEFT:
            return "rtl"
        if kind == "L":
            return "ltr"
    return "ltr"
