"""Take sentences out of a book by a rule that can be repeated: in an order drawn from a seed."""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

SHORTEST, LONGEST = 9, 14  # words of a sentence
SEED = 0
PLAIN = re.compile(r"[A-Z][A-Za-z ,;:’'\-]+[.!?]")  # no headings, quotations, dashes between words or numbers


def sentences(book: str, seed: int = SEED) -> list[str]:
    """All plain sentences of 9 to 14 words of a book, once each, in an order drawn from a seed."""
    found = []
    for paragraph in re.split(r"\n\s*\n", book):
        one_line = " ".join(paragraph.split())
        for sentence in re.split(r"(?<=[.!?])\s+", one_line):
            if PLAIN.fullmatch(sentence) and SHORTEST <= len(sentence.split()) <= LONGEST:
                found.append(sentence)
    found = list(dict.fromkeys(found))
    random.Random(seed).shuffle(found)
    return found


def words(text: str) -> list[tuple[str, int, int]]:
    """What stands between blanks, with its characters [start, end): every word, with the punctuation at its end."""
    return [(found[0], *found.span()) for found in re.finditer(r"\S+", text)]


def letters(text: str, least: int) -> list[tuple[str, int, int]]:
    """The runs of so many or more small letters that are whole words."""
    return [(found[0], *found.span()) for found in re.finditer(rf"(?<![\w’'-])[a-zà-ÿ]{{{least},}}(?![\w’'-])", text)]


def sharing(word: str, pool: Sequence[str], but: str) -> Iterator[str]:
    """The other sentences in which a word stands once, in their order."""
    whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    return (each for each in pool if each != but and len(whole.findall(each)) == 1)


def read(book: Path) -> str:
    """The book, as it is written."""
    return book.read_text(encoding="utf-8")
