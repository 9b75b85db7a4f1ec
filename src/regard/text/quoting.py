"""Quote words and tokens in sentences, always with curly quotation marks: “bank”.

Error messages quote a wrong value in Python's notation: 'bank'.
"""

import unicodedata
from collections.abc import Sequence
from typing import Literal

MARKS = {"\n": "↵", "\xa0": "⍽"}  # shown for line breaks and no-break spaces


# Each control character is replaced by one character, so that positions in the text stay the same: ASCII's by its
# control picture, those of U+0080 to U+009F and those that change the text direction by the picture of SUBSTITUTE.
DIRECTION_MARKS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))  # Unicode's Bidi_Control
BLANKS = "\t\n\r"
PICTURES = {n: 0x2400 + n for n in range(32) if chr(n) not in BLANKS} | {127: 0x2421}
PICTURES |= dict.fromkeys((*range(0x80, 0xA0), *DIRECTION_MARKS), 0x2426)
RIGHT_TO_LEFT = ("R", "AL")  # Unicode's bidirectional classes of Hebrew and similar scripts, and of Arabic


def quoted(text: str) -> str:
    """Quote a word or token for a sentence, without surrounding blanks. Blanks are described in words."""
    return f"“{visible(text.strip())}”" if text.strip() else "a line break" if "\n" in text else "a blank"


def some_of(names: Sequence[str], limit: int) -> str:
    """Join the first `limit` names, and count the others: "a, b and 3 more"."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit:,} more" if len(names) > limit else "")


def visible(text: str) -> str:
    """Escape unprintable characters of a text, so that a terminal doesn't execute them. A line break becomes ↵."""
    return "".join(
        MARKS.get(c, c) if c.isprintable() or c in MARKS else c.encode("unicode_escape").decode() for c in text
    )


def short(text: str, limit: int = 24) -> str:
    """Make a text printable. Cut a text of more than `limit` characters, and end it with …."""
    text = visible(text)
    text = text if text.strip(" ") else "␣" * len(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def display_text(text: str, limit: int = 24) -> str:
    """Format a token as all views show it. ␣ marks blanks at its ends, since " bank" and "bank" are two tokens."""
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" "))
    return short("␣" * before + inner + "␣" * (len(text) - before - len(inner)), limit)


def text_with_control_pictures(text: str) -> str:
    """Replace each invisible character, except blanks, and each character that changes the text direction."""
    return text if text.isascii() and text.isprintable() else text.translate(PICTURES)


def direction(text: str) -> Literal["ltr", "rtl"]:
    """Return "rtl" if a text's first letter belongs to a right-to-left script, else "ltr"."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in RIGHT_TO_LEFT:
            return "rtl"
        if kind == "L":
            return "ltr"
    return "ltr"
