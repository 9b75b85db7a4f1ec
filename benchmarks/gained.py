"""False alarms of "gained" and "lost": python -m benchmarks.gained CORPUS... [--words N] [--halves N] [--stores FOLDER]

CORPUS: a text file, whose paragraphs are documents, or a .jsonl of lines with a text. The documents are dealt out at
random to two halves, again and again; nothing differs between them, so a sense is said to be gained or lost by chance
alone. Asked are the words that the store has most evenly by rank, of so many occurrences, each in halves of its own,
with as many senses as the silhouette says and with four, so that there is something to gain and to lose.

Counted are the questions in which any sense is said to be gained or lost; beside it those in which the shares alone
would say so (at most 2 % of one half, 10 % of the other or more), in which any sense's p is 0.05 or less, and in which
that of the whole word is. Each as a share of all questions and, but for the last, of those with senses told apart.
"""

import argparse
import json
import math
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine
from regard.corpus.asking.change import ABSENT, PRESENT
from regard.corpus.questions.shift import Shift

OCCURRENCES = (20, 400)  # of a word that is asked about
SENSES = (None, 4)  # as many as the silhouette says, and so many
COLUMNS = 40  # ways to halve the documents


def documents_of(file: Path) -> list[str]:
    """Paragraphs of a text; of a .jsonl its different texts."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".jsonl":
        return list(dict.fromkeys(json.loads(line)["text"] for line in text.splitlines()))
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def make_store(documents: list[str], folder: Path) -> Path:
    """Embed documents, each with the half that it is in, in so many columns; a store that is there is completed."""
    from regard import corpus

    draws = np.random.default_rng(0)
    halves = [draws.permutation(np.arange(len(documents)) % 2) for _ in range(COLUMNS)]
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"text": text} | {f"half{n}": "ab"[half[number]] for n, half in enumerate(halves)}
        for number, text in enumerate(documents)
    ]
    file = folder / "documents.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    corpus.embed(str(file), str(folder / "store"), settings=corpus.Settings(statistics=False), workers=1)
    return folder / "store"


def words_of(store: Any, count: int) -> list[str]:
    """Words that stand often enough, and not too often, evenly over their ranks."""
    query = "SELECT word FROM rows GROUP BY word HAVING count(*) BETWEEN ? AND ? ORDER BY count(*) DESC, word"
    found = [row["word"] for row in store.sql(query, OCCURRENCES).to_pylist()]
    return [found[n] for n in np.unique(np.linspace(0, len(found) - 1, count).round().astype(int))]


def interval(alarms: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    z, share = 1.96, alarms / count
    middle = share + z * z / (2 * count)
    width = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, (middle - width) / (1 + z * z / count)), (middle + width) / (1 + z * z / count)


def by_shares(found: Shift) -> bool:
    """Whether any sense would be said to be gained or lost by its shares alone."""
    return any(min(each.shares) <= ABSENT and max(each.shares) >= PRESENT for each in found.senses)


def false_alarms(file: Path, store: Path, words: int, halves: int) -> None:
    from regard.corpus import Store

    with Store(store) as opened:
        chosen = words_of(opened, words)
        for k in SENSES:
            counted: Counter[str] = Counter()
            for number, word in enumerate(chosen):
                for half in range(halves):
                    found = opened.shift(word, column=f"half{(number * halves + half) % COLUMNS}", k=k, examples=0)
                    counted["asked"] += 1
                    counted["apart"] += len(found.senses) > 1
                    counted["documents"] += found.permuted == "documents"
                    counted["shares"] += by_shares(found)
                    counted["said"] += any(each.fate in ("gained", "lost") for each in found.senses)
                    counted["test"] += any(each.p is not None and each.p <= 0.05 for each in found.senses)
                    counted["whole"] += found.change.p <= 0.05
            senses = "senses by silhouette" if k is None else f"{k} senses"
            print(
                f"{file.name}, {senses}: {len(chosen)} words, {counted['asked']} questions, {counted['apart']} with "
                f"senses told apart, {counted['documents']} by documents"
            )
            for name in ("said", "shares", "test", "whole"):
                for of in ("asked",) if name == "whole" else ("asked", "apart"):
                    low, high = interval(counted[name], counted[of]) if counted[of] else (0.0, 1.0)
                    print(f"  {name}: {counted[name]} of {counted[of]} ({of}), 95 % interval {low:.1%} to {high:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path, metavar="CORPUS")
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--halves", type=int, default=3)
    parser.add_argument("--stores", type=Path, help="where stores are kept for another run; by default nowhere")
    given = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        for file in given.corpora:
            folder = (given.stores or Path(temporary)) / file.stem
            false_alarms(file, make_store(documents_of(file), folder), given.words, given.halves)


if __name__ == "__main__":
    main()
