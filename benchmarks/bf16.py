"""What vectors in bf16 change in answers: python -m benchmarks.bf16 [FILE] [--top N]

FILE: a .jsonl of labelled occurrences (lemma, text, start, end, sense, key), by default SemCor's nouns, REGARD_SHARED.
Its texts are embedded in float32 and in bf16 (`regard embed --precision bf16`): vectors
of words, of the last layer. Beside float32's: how many of the first lines of `find --like` have the question's sense
(`benchmarks.like`); how alike the groups are that k-means makes of each noun's occurrences (adjusted Rand index, as
many groups as it has senses), beside float32's own with another seed; and the rank correlation of the cosines of all
pairs of sentences, each the mean of its words. Labelled pairs of sentences (STS) are not at hand: the correlation tells
how little the order of any pairs changes.
"""

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet

from benchmarks.like import labelled_occurrences, precision
from benchmarks.measure import machine
from regard.corpus.embed_texts import embed
from regard.corpus.reading.document import Columns
from regard.corpus.settings import Settings
from regard.errors import RegardError

WAYS = {
    "float32": Settings(dtype="float32", statistics=False),
    "bf16, torch": Settings(dtype="float32", statistics=False, precision="bf16"),
}
Words = dict[tuple[str, int], np.ndarray]  # by the text and the word's first character


def embedded(texts: list[str], settings: Settings, model: Any) -> tuple[Words, str]:
    """The vector of each word, and what the store says of their precision."""
    with tempfile.TemporaryDirectory() as folder:
        file, store = Path(folder, "texts.jsonl"), Path(folder, "store")
        file.write_text("".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts)))
        report = embed(file, store, model=model, settings=settings, columns=Columns("text", "id"))
        found: Words = {}
        for shard in store.joinpath("shards").iterdir():
            rows = pyarrow.parquet.read_table(shard / "rows.parquet", columns=["document", "start"]).to_pylist()
            for row, vector in zip(rows, np.load(shard / "vectors.npy")[:, 0], strict=True):
                found[texts[int(row["document"].rsplit("#")[-1])], row["start"]] = vector
        return found, " ".join(report.notes)


def groups(vectors: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Which of so many groups k-means puts each vector in, on vectors of length 1."""
    from sklearn.cluster import KMeans

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return KMeans(count, n_init=10, random_state=seed).fit_predict(unit)


def similarities(words: Words) -> np.ndarray:
    """The cosines of all pairs of sentences, each the mean of its words."""
    by_text: dict[str, list[np.ndarray]] = defaultdict(list)
    for (text, _), vector in sorted(words.items()):
        by_text[text].append(vector)
    means = np.stack([np.mean(own, 0, dtype=np.float64) for own in by_text.values()])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return (means @ means.T)[np.triu_indices(len(means), 1)]


def main() -> None:
    rows, top = labelled_occurrences(__doc__)
    from scipy.stats import spearmanr
    from sklearn.metrics import adjusted_rand_score

    import regard

    model = regard.load()
    texts = list(dict.fromkeys(row["text"] for row in rows))
    plain, similar, first = {}, np.zeros(0), True
    for name, settings in WAYS.items():
        try:
            words, note = embedded(texts, settings, model)
        except RegardError as error:
            print(f"{name}: not measured ({error})")
            continue
        own = [row for row in rows if (row["text"], row["start"]) in words]
        vectors = np.stack([words[row["text"], row["start"]] for row in own])
        found = precision(vectors, own, "sense", top)
        right = np.mean([each[0] for asked in found.values() for each in asked])
        print(f"{name}: {len(own)} of {len(rows)} occurrences in {len(texts)} texts. {note}")
        print(f"  of the first {top} lines {right:.2%} have the question's sense")
        made, other = {}, {}
        for noun in {row["lemma"] for row in own}:
            at = [n for n, row in enumerate(own) if row["lemma"] == noun]
            count = len({own[n]["sense"] for n in at})
            made[noun] = groups(vectors[at], count, 0)
            other[noun] = groups(vectors[at], count, 1) if first else plain[noun]
        alike = [adjusted_rand_score(made[noun], other[noun]) for noun in made]
        beside = "its own with another seed" if first else "float32's"
        print(f"  groups beside {beside}: adjusted Rand index {np.mean(alike):.3f}, least {min(alike):.3f}")
        if first:
            plain, similar, first = made, similarities(words), False
            continue
        now = similarities(words)
        off, ranks = np.abs(now - similar).max(), spearmanr(now, similar).statistic
        print(f"  cosines of {len(now):,} pairs of sentences: at most {off:.1e} off, rank correlation {ranks:.7f}")
    print(machine())


if __name__ == "__main__":
    main()
