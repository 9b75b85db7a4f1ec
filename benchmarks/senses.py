"""How well `senses` finds senses: python -m benchmarks.senses FOLDER

FOLDER has semcor_nouns/nouns.jsonl (labelled occurrences: lemma, text, start, end, sense) and
tatoeba_fra_eng/fra-eng.zip (sentences). Every group of words is split in two before anything is tuned: sorted, the
first, third, ... for tuning, the others held out. The score is the adjusted Rand index (ARI) of the clusters with the
labels, 0 if several senses are one cluster. A word with one sense scores 1 if it stays whole, else 0.

- nouns: SemCor's polysemous nouns with WordNet's coarse senses.
- joined: occurrences of two to four unambiguous nouns as one word, the rarest a quarter of the largest or more.
- replaced: the same, and a made-up word in the place of each, so that the context alone tells them apart.
- one sense: the largest sense of each SemCor noun alone, and each unambiguous noun alone.

Compared: what `senses` does (silhouette and separation, `regard.corpus.asking.clusters`), the silhouette alone, and the
right k given.
"""

import argparse
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import machine

UNAMBIGUOUS = (
    "airport apple beer bicycle bread breakfast brother bus camera clock coffee computer daughter desk dictionary "
    "doctor dog dollars eggs father guitar horse hospital hotel husband knife lawyer library meat milk mother mountain "
    "movie museum piano police prison rain restaurant river shirt shoes sister snow sugar sun tea teacher telephone "
    "tennis ticket tree umbrella uncle village wife wine winter"
)
MADE_UP = "blicket"
EACH = 40  # occurrences of an unambiguous noun
DRAWN = 6  # joined words of two, three and four nouns each

Word = tuple[np.ndarray, np.ndarray]  # vectors, labels


def unambiguous_places(folder: Path) -> tuple[list[str], list, list]:
    """Nouns in sentences of six words or more with none of the others; and with a made-up word in their place."""
    from regard.corpus.asking.vectors import WordSpan

    with zipfile.ZipFile(folder / "tatoeba_fra_eng" / "fra-eng.zip") as archive:
        lines = archive.read("fra.txt").decode().splitlines()
    sentences = [each for each in dict.fromkeys(line.split("\t")[0] for line in lines) if len(each.split()) >= 6]
    names, kept, replaced = [], [], []
    for noun in UNAMBIGUOUS.split():
        others = "|".join(each for each in UNAMBIGUOUS.split() if each != noun)
        own = [each for each in sentences if len(re.findall(rf"\b{noun}\b", each, re.IGNORECASE)) == 1]
        own = [each for each in own if not re.search(rf"\b({others})\b", each, re.IGNORECASE)]
        for n in range(min(EACH, len(own))):
            text = own[int(n * max(1, len(own) / EACH))]
            start, end = re.search(rf"\b{noun}\b", text, re.IGNORECASE).span()
            names.append(noun)
            kept.append(WordSpan(text, start, end))
            replaced.append(WordSpan(text[:start] + MADE_UP + text[end:], start, start + len(MADE_UP)))
    return names, kept, replaced


def joined(vectors: np.ndarray, names: np.ndarray, half: int) -> Iterator[Word]:
    """Words made of two to four nouns of a half."""
    draws = np.random.default_rng(half)
    nouns = sorted(set(names))[half::2]
    for count in (2, 3, 4):
        for _ in range(DRAWN):
            chosen = draws.choice(nouns, count, replace=False)
            sizes = [EACH, *draws.integers(EACH // 4, EACH + 1, count - 1)]
            rows = [draws.permutation(np.flatnonzero(names == each))[:n] for each, n in zip(chosen, sizes, strict=True)]
            yield vectors[np.concatenate(rows)], np.repeat(np.arange(count), [len(each) for each in rows])


def by_silhouette(vectors: np.ndarray) -> np.ndarray:
    """The clusters of the k with the largest silhouette; one if it is too small."""
    from regard.corpus.asking.clusters import SILHOUETTE, find_clusters

    tried = find_clusters(vectors).silhouettes
    best = max(tried, key=tried.__getitem__, default=1)
    return find_clusters(vectors, best if tried.get(best, 0) >= SILHOUETTE else 1).labels


def report(name: str, words: list[Word]) -> None:
    """Print the mean ARI of each rule, and how many words it leaves whole."""
    from sklearn.metrics import adjusted_rand_score

    from regard.corpus.asking.clusters import find_clusters

    line = f"  {name:28} {len(words):3} words"
    rules = {
        "senses": lambda vectors, _: find_clusters(vectors).labels,
        "silhouette alone": lambda vectors, _: by_silhouette(vectors),
        "k given": lambda vectors, k: find_clusters(vectors, k).labels,
    }
    for rule, clusters in rules.items():
        answers = [clusters(vectors, len(set(labels))) for vectors, labels in words]
        score = np.mean([adjusted_rand_score(labels, own) for (_, labels), own in zip(words, answers, strict=True)])
        line += f"; {rule} {score:.2f} ({sum(own.max() == 0 for own in answers)} whole)"
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder = parser.parse_args().folder
    import regard
    from regard.corpus.asking.vectors import WordSpan, embed_spans

    model = regard.load()
    lines = (folder / "semcor_nouns" / "nouns.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    names, kept, replaced = unambiguous_places(folder)
    places = [[WordSpan(row["text"], row["start"], row["end"]) for row in rows], kept, replaced]
    in_semcor, with_own, with_made_up = (embed_spans(model, each, [5])[:, 0].astype(np.float16) for each in places)
    lemmas, nouns = np.array([row["lemma"] for row in rows]), np.array(names)
    senses = np.array([row["sense"] for row in rows])
    print(f"{len(rows)} occurrences in SemCor, {len(names)} of unambiguous nouns, {model.name}; {machine()}")
    for half, title in enumerate(("tuning", "held out")):
        polysemous = []
        for lemma in sorted(set(lemmas))[half::2]:
            own = lemmas == lemma
            polysemous.append((in_semcor[own], np.unique(senses[own], return_inverse=True)[1]))
        largest = [vectors[labels == np.bincount(labels).argmax()] for vectors, labels in polysemous]
        print(title)
        report("nouns", polysemous)
        report("joined", list(joined(with_own, nouns, half)))
        report("replaced", list(joined(with_made_up, nouns, half)))
        alone = [with_own[nouns == each] for each in sorted(set(names))[half::2]]
        for name, some in (("one sense, of the nouns", largest), ("one sense, unambiguous", alone)):
            report(name, [(each, np.zeros(len(each), dtype=int)) for each in some])


if __name__ == "__main__":
    main()
