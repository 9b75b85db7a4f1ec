"""The lines that a painter reads: two digits, each in a corner; without torch."""

from dataclasses import dataclass

from regard.errors import RegardError

START, COMMA, ARTICLE = "<start>", ",", "a"
ROWS, COLUMNS = ("top", "bottom"), ("left", "right")
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
WORDS = (START, COMMA, ARTICLE, *ROWS, *COLUMNS, *DIGITS)
NUMBER = {word: number for number, word in enumerate(WORDS)}
EXAMPLE = "a seven top left , a two bottom right"
ASKED = 3  # words of a seer's question, such as "top left ?"
LENGTH = 10  # words of a line, its start counted
DIGIT_PLACES = (2, 7)  # of a line's words, those that say which digits
PHRASES = ((1, 2, 3, 4), (6, 7, 8, 9))  # the words of either digit


@dataclass(frozen=True)
class Scene:
    """Two digits, and the corner of each: 0 top left, 1 top right, 2 bottom left, 3 bottom right."""

    digits: tuple[int, int]
    corners: tuple[int, int]

    @property
    def words(self) -> list[str]:
        """The line that says so, its start before it."""
        said = [
            [ARTICLE, DIGITS[digit], ROWS[corner // 2], COLUMNS[corner % 2]]
            for digit, corner in zip(self.digits, self.corners, strict=True)
        ]
        return [START, *said[0], COMMA, *said[1]]

    @property
    def text(self) -> str:
        """The line as a person writes it."""
        return " ".join(self.words[1:])


def read_scene(text: str, option: str = "TEXT") -> Scene:
    """Read a line of two digits in two corners.

    Raises:
        RegardError: a word is unknown, or the line is none of this form; the form is shown.
    """
    words = text.replace(",", " , ").lower().split()
    unknown = [word for word in words if word not in WORDS[1:]]
    if unknown:
        raise RegardError(f"{option} {text[:60]!r}: {unknown[0]!r} is none of a painter's words: {' '.join(WORDS[1:])}")
    halves = [words[:4], words[5:]]
    whole = len(words) == LENGTH - 1 and words[4] == COMMA
    if not whole or not all(_is_phrase(half) for half in halves):
        raise RegardError(f"{option} {text[:60]!r}: needs two digits, each in a corner, such as {EXAMPLE!r}")
    digits = [DIGITS.index(half[1]) for half in halves]
    corners = [2 * ROWS.index(half[2]) + COLUMNS.index(half[3]) for half in halves]
    if corners[0] == corners[1]:
        raise RegardError(f"{option} {text[:60]!r}: both digits are {' '.join(halves[0][2:])}, needs two corners")
    return Scene((digits[0], digits[1]), (corners[0], corners[1]))


def _is_phrase(words: list[str]) -> bool:
    """Whether four words are "a", a digit, a row and a column."""
    kinds = ((ARTICLE,), DIGITS, ROWS, COLUMNS)
    return len(words) == len(kinds) and all(word in kind for word, kind in zip(words, kinds, strict=True))
