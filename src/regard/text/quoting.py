"""Quote a word or a token of a text in a sentence: one way, “bank”, wherever one is named.

What somebody gave and what is wrong with it is told by errors, as Python writes it: 'bank'.
"""

MARKS = {"\n": "↵", "\xa0": "⍽"}  # what stands for a line break and for a no-break space


def quoted(text: str) -> str:
    """A word or token in a sentence, printable, the blanks at its ends left away; blanks alone are called so."""
    return f"“{visible(text.strip())}”" if text.strip() else "a line break" if "\n" in text else "a blank"


def visible(text: str) -> str:
    """A text with what cannot be printed written out, so that a terminal obeys nothing in it; a line break as ↵."""
    return "".join(MARKS.get(c, c) if c.isprintable() or c in MARKS else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
