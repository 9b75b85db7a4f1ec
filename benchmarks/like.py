"""How many of the first lines of `find --like` mean the same: python -m benchmarks.like [FILE] [--top N]

FILE: a .jsonl of labelled occurrences (lemma, text, start, end, sense, key), by default SemCor's nouns, REGARD_SHARED.
Each occurrence asks: the others of its lemma are ranked by the cosine of their embeddings, as `find` ranks lines, those
of its own sentence left out; of the first so many it is counted how many have its sense. Asked are senses with so many
other occurrences, of lemmas with two senses or more, once by coarse and once by fine senses. Chance: the share of the
sense among those ranked.
"""

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from benchmarks.corpus import SHARED
from benchmarks.measure import machine

NOUNS = SHARED / "data" / "semcor_nouns" / "nouns.jsonl"


def precision(vectors: np.ndarray, rows: list[dict], sense: str, top: int) -> dict[tuple[str, str], list[tuple]]:
    """Of each lemma and sense, for each occurrence the share of its sense among the first and among all others."""
    from regard.corpus.asking.vectors import cosines, largest

    found: dict[tuple[str, str], list[tuple]] = {}
    lemmas: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        lemmas[row["lemma"]].append(number)
    for lemma, own in lemmas.items():
        counts = Counter(rows[n][sense] for n in own)
        for name in [each for each, count in counts.items() if count > top and len(counts) > 1]:
            asked = []
            for n in (each for each in own if rows[each][sense] == name):
                others = [m for m in own if rows[m]["text"] != rows[n]["text"]]
                right = np.array([rows[m][sense] == name for m in others])
                first = largest(cosines(vectors[others], vectors[n]), top)
                asked.append((right[first].mean(), right.mean()))
            found[lemma, name] = asked
    return found


def labelled_occurrences(description: str | None) -> tuple[list[dict], int]:
    """The labelled occurrences, and of how many first lines, as the command line has them."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=NOUNS)
    parser.add_argument("--top", type=int, default=20)
    given = parser.parse_args()
    return [json.loads(line) for line in given.file.read_text(encoding="utf-8").splitlines()], given.top


def main() -> None:
    rows, top = labelled_occurrences(__doc__)
    import regard
    from regard.corpus.asking.vectors import WordSpan, embed_spans

    model = regard.load()
    places = [WordSpan(row["text"], row["start"], row["end"]) for row in rows]
    vectors = embed_spans(model, places, [5])[:, 0]
    print(f"{len(rows)} occurrences of {len({row['lemma'] for row in rows})} nouns; {machine()}")
    for sense in ("sense", "key"):
        found = precision(vectors, rows, sense, top)
        means = {key: np.mean(asked, axis=0) for key, asked in found.items()}
        every = np.array([each for asked in found.values() for each in asked])
        print(f"{sense}: {len(found)} senses of {len({lemma for lemma, _ in found})} nouns, {len(every)} questions")
        over_senses = np.mean([each[0] for each in means.values()])
        print(f"  of the first {top}: {every[:, 0].mean():.1%} of questions, {over_senses:.1%} mean over senses")
        print(f"  by chance: {every[:, 1].mean():.1%}, {np.mean([each[1] for each in means.values()]):.1%}")
        minor = {key: each for key, each in means.items() if each[1] < 0.5}
        if minor:
            print("  of senses that less than half have: {} senses, {:.1%}, by chance {:.1%}".format(
                len(minor), *np.mean(list(minor.values()), axis=0)))  # fmt: skip
        print(f"  tenths of questions: {np.quantile(every[:, 0], [0.1, 0.25, 0.5, 0.75, 0.9]).round(2)}")
        worst = sorted(means, key=lambda key: means[key][0] - means[key][1])[:3]
        print(f"  least above chance: {[(key, means[key].round(2).tolist()) for key in worst]}")


if __name__ == "__main__":
    main()
