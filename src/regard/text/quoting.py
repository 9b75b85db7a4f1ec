"""Quote a word or a token of a text in a sentence, always like “bank”.

Error messages quote a wrong value as Python writes it: 'bank'.
"""

import unicodedata
from collections.abc import Sequence
from typing import Literal

MARKS = {"\n": "↵", "\xa0": "⍽"}  # shown for a line break and for a no-break space


# Replacements for control characters, one character each to keep positions in a text: pictures for those of ASCII,
# the sign of a substitute for the next 32, which no font shows, and for those that change the direction of the text.
DIRECTION_MARKS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))  # Unicode's Bidi_Control
BLANKS = "\t\n\r"
PICTURES = {n: 0x2400 + n for n in range(32) if chr(n) not in BLANKS} | {127: 0x2421}
PICTURES |= dict.fromkeys((*range(0x80, 0xA0), *DIRECTION_MARKS), 0x2426)
RIGHT_TO_LEFT = ("R", "AL")  # Unicode's bidirectional classes of Hebrew and similar scripts, and of Arabic


def quoted(text: str) -> str:
    """Quote a word or token for a sentence, without blanks around it. A token of blanks is named."""
    return f"“{visible(text.strip())}”" if text.strip() else "a line break" if "\n" in text else "a blank"


def some_of(names: Sequence[str], most: int) -> str:
    """Join the first of some names, and the number of the others: "a, b and 3 more"."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def visible(text: str) -> str:
    """Escape unprintable characters of a text, so that a terminal doesn't execute them. A line break is ↵."""
    return "".join(
        MARKS.get(c, c) if c.isprintable() or c in MARKS else c.encode("unicode_escape").decode() for c in text
    )


def short(text: str, most: int = 24) -> str:
    """Make a text printable, and cut it to `most` characters if it is longer, with … at its end."""
    text = visible(text)
    text = text if text.strip(" ") else "␣" * len(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def display_text(text: str, most: int = 24) -> str:
    """Write a token as all views show it, with ␣ for blanks at its ends. " bank" and "bank" are two tokens."""
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" "))
    return short("␣" * before + inner + "␣" * (len(text) - before - len(inner)), most)


def text_with_control_pictures(text: str) -> str:
    """Replace invisible characters and those that change the text direction, one by one, except blanks."""
    return text if text.isascii() and text.isprintable() else text.translate(PICTURES)


def direction(text: str) -> Literal["ltr", "rtl"]:
    """Return "rtl" if a text's first letter is of a right-to-left script, else "ltr"."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in RIGHT_TO_LEFT:
            return "rtl"
        if kind == "L":
            return "ltr"
    return "ltr"
