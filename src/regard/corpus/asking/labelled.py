"""Read sentences in each of which one word is labelled with its sense: a CSV file."""

import csv
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from regard.corpus.asking.places import Place
from regard.errors import RegardError
from regard.files import check_regular

NEEDED = ("sentence", "position", "label")
EDGES = re.compile(r"^[\W_]*(.*?)[\W_]*$", re.S)


@dataclass(frozen=True)
class Labelled:
    """A word in a sentence, and the label of its sense. word: what it is learned and asked by."""

    place: Place
    word: str
    label: str


def read_labelled(file: Path) -> list[Labelled]:
    """Read a CSV file in UTF-8 with a header of sentence, position, label and, if wanted, word.

    position: which of the sentence's words is labelled, from 0, words being what blanks separate; signs before and
    after it are left off. word: what the occurrence is of, such as its lemma; else its form, case-folded.
    """
    check_regular(file, "labelled sentences")
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            reader = csv.DictReader(opened, strict=True)
            missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
            if missing:
                raise RegardError(f"{str(file)!r}: has no column {missing[0]!r}, needs {', '.join(NEEDED)}")
            found = [_read_labelled_row(row, f"{str(file)!r}, line {reader.line_num}") for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RegardError(f"{str(file)!r} cannot be read: {error}") from error
    if not found:
        raise RegardError(f"{str(file)!r}: given no labelled sentence")
    return found


def _read_labelled_row(row: dict[str, str | None], where: str) -> Labelled:
    sentence, position, label = (row[name] or "" for name in NEEDED)
    words = [match.span() for match in re.finditer(r"\S+", sentence)]
    if not position.strip().isdecimal() or int(position) >= len(words):
        there = f"0 to {len(words) - 1}" if words else "none, it is empty"
        raise RegardError(f"{where}: given position {position!r}, the sentence has words {there}")
    if not label.strip():
        raise RegardError(f"{where}: the label is empty")
    start, end = words[int(position)]
    match = EDGES.match(sentence[start:end])
    if match is not None and match[1]:
        start, end = start + match.start(1), start + match.end(1)
    place = Place(sentence, start, end)
    word = (row.get("word") or "").strip() or place.form
    return Labelled(place, unicodedata.normalize("NFC", word).casefold(), label.strip())
