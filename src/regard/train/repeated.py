"""Make a text of random letters that come again: only who looks behind the last time knows what is next.

What induction heads are for (Olsson et al. 2022, "In-context Learning and Induction Heads"): in a line `kpwakpwakpwa`
every letter but the first few follows from what came behind it before, and from nothing else.
"""

import random
import string

LETTERS = string.ascii_letters[:40]
PERIODS = (5, 11)  # how many different letters a line repeats, at least and at most
LINE, LINES = 64, 8_000


def repeated_training_text(seed: int, lines: int = LINES) -> str:
    """Draw lines of 64 letters, each 5 to 11 different ones over and over; the same from the same seed."""
    drawn = random.Random(seed)
    return "".join(f"{_line_of_repeated_letters(drawn, drawn.randint(*PERIODS), LINE)}\n" for _ in range(lines))


def repeated_training_line(seed: int, length: int) -> str:
    """Draw one such line of another length, that is in no text: it repeats twice at least."""
    drawn = random.Random(f"watched {seed}")
    return _line_of_repeated_letters(drawn, min(8, length // 2), length)


def _line_of_repeated_letters(drawn: random.Random, period: int, length: int) -> str:
    letters = "".join(drawn.sample(LETTERS, period))
    return (letters * (length // period + 1))[:length]
