"""False alarms and found changes of `regard shift` on a real book: python -m benchmarks.shift [FILE] [--halves N]

The book is cut where paragraphs end into documents of about 6,000 characters, which are dealt out at random to two
halves, again and again. Nothing differs between the halves, so the test may raise an alarm (p <= 0.05) in 5 % of them.
Then two words are exchanged in the text of one half, and the same question is asked.
"""

import argparse
import json
import re
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.corpus import BOOK
from benchmarks.measure import machine

SIZE = 6000  # characters of a document, about
EXCHANGED = (("whale", "sea"), ("ship", "man"), ("head", "hand"))
ALARM = 0.05


def documents_of(text: str) -> list[str]:
    """Cut a text where paragraphs end."""
    found, part = [], ""
    for paragraph in re.split(r"\n\s*\n", text):
        part += paragraph + "\n\n"
        if len(part) >= SIZE:
            found.append(part)
            part = ""
    return [*found, part] if part.strip() else found


def exchange(text: str, one: str, other: str) -> str:
    """Write each of two words where the other stood."""
    swap = {one: other, other: one}
    return re.sub(rf"\b({one}|{other})\b", lambda match: swap[match[0]], text)


def embed(documents: list[str], labels: np.ndarray, folder: Path) -> Path:
    """Make a store of documents; labels (halves, documents): which half each is in, a column of metadata for each."""
    from regard import corpus

    rows = [
        {"text": text} | {f"half{n}": "ab"[side] for n, side in enumerate(labels[:, number])}
        for number, text in enumerate(documents)
    ]
    file = folder / "documents.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus.embed(str(file), str(folder / "store"), settings=corpus.Settings(statistics=False))
    return folder / "store"


def common_words(store: Path, count: int) -> list[str]:
    """Words of four letters or more that stand in the store 60 to 600 times, evenly over their ranks."""
    from regard.corpus import Store

    with Store(store) as opened:
        found = opened.sql(
            "SELECT word FROM rows WHERE length(word) > 3 GROUP BY word HAVING count(*) BETWEEN 60 AND 600 "
            "ORDER BY count(*) DESC, word"
        ).to_pylist()
    words = [row["word"] for row in found]
    return [words[n] for n in np.linspace(0, len(words) - 1, count).round().astype(int)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default=str(BOOK))
    parser.add_argument("--halves", type=int, default=20)
    parser.add_argument("--words", type=int, default=25)
    given = parser.parse_args()
    from regard.corpus import Store

    documents = documents_of(Path(given.file).read_text(encoding="utf-8"))
    draws = np.random.default_rng(0)
    labels = np.array([draws.permutation(np.arange(len(documents)) % 2) for _ in range(given.halves)])
    with tempfile.TemporaryDirectory() as folder:
        store = embed(documents, labels, Path(folder))
        words = common_words(store, given.words)
        took, p, moved = [], [], 0
        with Store(store) as opened:
            for word in words:
                for half in range(given.halves):
                    start = time.perf_counter()
                    found = opened.shift(word, column=f"half{half}", rounds=399)
                    took.append(time.perf_counter() - start)
                    assert found.permuted == "documents"
                    p.append(found.change.p)
                    moved += any(sense.fate != "kept" for sense in found.senses)
    alarms = sum(each <= ALARM for each in p)
    print(f"{len(documents)} documents, {len(words)} words in {given.halves} random halves; {machine()}")
    print(f"alarms (p <= {ALARM}): {alarms} of {len(p)}, {100 * alarms / len(p):.1f} %")
    print(f"a sense said to be gained or lost: {moved} of {len(p)}")
    print(f"one question, 399 rounds: {1e3 * statistics.median(took):.0f} ms")
    for one, other in EXCHANGED:
        with tempfile.TemporaryDirectory() as folder:
            texts = [exchange(text, one, other) if labels[0, n] else text for n, text in enumerate(documents)]
            with Store(embed(texts, labels[:1], Path(folder))) as opened:
                for word in (one, other):
                    found = opened.shift(word, column="half0")
                    fates = ", ".join(sense.fate for sense in found.senses)
                    print(f"{one} and {other} exchanged in one half: {word}, p = {found.change.p:.3f}, senses {fates}")


if __name__ == "__main__":
    main()
