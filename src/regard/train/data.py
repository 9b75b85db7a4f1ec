"""What is trained on: text files, and files of sentence pairs; read whole, refused by name where they cannot be."""

import random
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import RegardError

LARGE = 8  # pairs of a group from which on none of it is held out: all the others would be lost to training
LETTERS = string.ascii_letters[:40]
PERIODS = (5, 11)  # how many different letters a line repeats, at least and at most
LINE, LINES = 64, 8_000


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation."""

    source: str
    target: str


def read_training_texts(files: Sequence[Path]) -> list[str]:
    """Read text files."""
    texts = [_read_training_file(file) for file in files]
    for file, text in zip(files, texts, strict=True):
        if not text.strip():
            raise RegardError(f"{str(file)!r} is {'blank' if text else 'empty'}: there is nothing to train on")
    return texts


def read_training_pairs(file: Path) -> list[Pair]:
    """Read the pairs of a file of tab-separated values: source, target, and columns after them that are left alone.

    A pair that occurs several times is kept once. Blank lines are passed over.
    """
    pairs: dict[Pair, None] = {}
    for number, line in enumerate(_read_training_file(file).split("\n"), 1):
        line = line.rstrip("\r")
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) < 2:
            raise RegardError(f"{str(file)!r}, line {number}: no tab, which stands between source and target")
        for side, column in (("source", columns[0]), ("target", columns[1])):
            if not column:
                raise RegardError(f"{str(file)!r}, line {number}: the {side} is missing")
        pairs[Pair(columns[0], columns[1])] = None
    if not pairs:
        raise RegardError(f"{str(file)!r} holds no pair: there is nothing to train on")
    return list(pairs)


def hold_out(pairs: Sequence[Pair], count: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split pairs into (training, held out), so that no sentence of either side stands in both.

    Pairs that share a sentence, over any number of steps, are a group. Of count groups, drawn among those of at most 8
    pairs, one pair each is held out, so that their sentences are all different; the rest of those groups is left out of
    both.
    """
    root: dict[tuple[str, str], tuple[str, str]] = {}

    def find(node: tuple[str, str]) -> tuple[str, str]:
        root.setdefault(node, node)
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for pair in pairs:
        root[find(("source", pair.source))] = find(("target", pair.target))
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(find(("source", pair.source)), []).append(pair)
    small = [name for name, members in groups.items() if len(members) <= LARGE]
    if count >= len(small) or count >= len(groups):
        raise RegardError(
            f"held_out: {count} pairs cannot be held out of {len(pairs)}, {len(small)} small groups share no sentence: "
            "--set held_out=N"
        )
    drawn = random.Random(seed).sample(small, count)
    apart = set(drawn)
    return [pair for name in groups if name not in apart for pair in groups[name]], [groups[name][0] for name in drawn]


def watched_pair(sentence: str, pairs: Sequence[Pair], name: str) -> Pair:
    """Find a watched sentence and its target: given with a tab between, or a sentence that was held out."""
    source, tab, target = sentence.partition("\t")
    if tab and source.strip() and target.strip():
        return Pair(source.strip(), target.strip())
    for pair in pairs:
        if pair.source == sentence:
            return pair
    raise RegardError(
        f"--watch {sentence[:40]!r}: a translator needs a target, with a tab between, or a sentence held out of {name}"
    )


def _read_training_file(file: Path) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise RegardError(f"{str(file)!r} cannot be read: {error.strerror or error}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RegardError(
            f"{str(file)!r} is no UTF-8: byte {content[error.start]:#04x} at place {error.start}"
        ) from None


def repeated_training_text(seed: int, lines: int = LINES) -> str:
    """Draw lines of 64 letters, each 5 to 11 different ones over and over; the same from the same seed.

    Each letter follows from its last occurrence alone, which induction heads find (Olsson et al. 2022).
    """
    drawn = random.Random(seed)
    return "".join(f"{_line_of_repeated_letters(drawn, drawn.randint(*PERIODS), LINE)}\n" for _ in range(lines))


def repeated_training_line(seed: int, length: int) -> str:
    """Draw one such line of another length, that is in no text: it repeats twice at least."""
    drawn = random.Random(f"watched {seed}")
    return _line_of_repeated_letters(drawn, min(8, length // 2), length)


def _line_of_repeated_letters(drawn: random.Random, period: int, length: int) -> str:
    letters = "".join(drawn.sample(LETTERS, period))
    return (letters * (length // period + 1))[:length]
