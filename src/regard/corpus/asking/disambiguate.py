"""Learn a word's senses from labelled sentences, and tell by the nearest centroid which one is meant.

A fifth of the sentences, drawn by label, is put aside. The layer is chosen on the others by stratified
cross-validation, the later one where several are as good; accuracy is that on the fifth, beside that of always naming
the most frequent label. Labels that occur once are learned, and not asked for: nothing is left to learn them from.
"""

import csv
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from regard.corpus.asking.places import WordSpan
from regard.corpus.asking.vectors import unit
from regard.errors import RegardError
from regard.files import check_regular

NEEDED = ("sentence", "position", "label")
EDGES = re.compile(r"^[\W_]*(.*?)[\W_]*$", re.S)
FOLDS = 5  # of cross-validation; and one fifth is put aside


@dataclass(frozen=True)
class Labelled:
    """A word in a sentence, and the label of its sense. word: what it is learned and asked by."""

    place: WordSpan
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
    place = WordSpan(sentence, start, end)
    word = (row.get("word") or "").strip() or place.form
    return Labelled(place, unicodedata.normalize("NFC", word).casefold(), label.strip())


@dataclass(frozen=True)
class Accuracy:
    """by_word: (right, asked, right by the most frequent label) of each word. micro: of all. macro: mean over words."""

    by_word: dict[str, tuple[int, int, int]]

    @property
    def micro(self) -> float:
        """Compute the share of all questions that are answered right."""
        return sum(right for right, _, _ in self.by_word.values()) / sum(asked for _, asked, _ in self.by_word.values())

    @property
    def macro(self) -> float:
        """Compute the mean over words of the share that is right."""
        return float(np.mean([right / asked for right, asked, _ in self.by_word.values()]))

    @property
    def most_frequent(self) -> float:
        """Compute the share that is right where a word's most frequent label is always named."""
        return sum(most for _, _, most in self.by_word.values()) / sum(asked for _, asked, _ in self.by_word.values())


@dataclass(frozen=True, eq=False)
class Disambiguator:
    """Centroids of each word's labels, from one layer.

    tried: the accuracy (micro) of every layer in cross-validation on the training part. accuracy: on the part that was
    put aside. The centroids are of all labelled sentences.
    """

    layer: int
    tried: dict[int, float]
    accuracy: Accuracy
    labels: dict[str, tuple[str, ...]]
    centroids: dict[str, Float[np.ndarray, "labels M"]]


def learn(
    vectors: Float[np.ndarray, "n layers M"],
    words: Sequence[str],
    labels: Sequence[str],
    layers: Sequence[int],
    *,
    seed: int = 0,
) -> Disambiguator:
    """Choose a layer, measure the accuracy, and learn the centroids."""
    points = unit(vectors)
    keys = list(zip(words, labels, strict=True))
    aside = stratified_folds(keys, seed) == 0
    training = np.flatnonzero(~aside)
    folds = stratified_folds([keys[n] for n in training], seed + 1)
    if not aside.any() or (folds < 0).all():
        raise RegardError("train: given no label that occurs three times, which choosing and testing a layer needs")
    tried: dict[int, float] = {}
    for row, layer in enumerate(layers):
        parts = [(training[folds != fold], training[folds == fold]) for fold in range(FOLDS)]
        right = [_right_sense_labels(points[:, row], keys, learned, asked) for learned, asked in parts if len(asked)]
        tried[layer] = float(np.concatenate(right).mean())
    row = max(range(len(layers)), key=lambda row: (tried[layers[row]], row))
    best, asked = points[:, row], np.flatnonzero(aside)
    accuracy = _sense_accuracy_by_word(keys, training, asked, _right_sense_labels(best, keys, training, asked))
    known, centroids = _centroids_of_sense_labels(best, keys, np.arange(len(keys)))
    return Disambiguator(layers[row], tried, accuracy, known, centroids)


def stratified_folds(keys: Sequence[tuple[str, str]], seed: int) -> Int[np.ndarray, " n"]:
    """Deal the examples of each (word, label) to `FOLDS` folds as evenly as can be; -1 for one that is alone."""
    random = np.random.default_rng(seed)
    folds = np.full(len(keys), -1)
    members: dict[tuple[str, str], list[int]] = {}
    for number, key in enumerate(keys):
        members.setdefault(key, []).append(number)
    for _, own in sorted(members.items()):
        if len(own) > 1:
            folds[random.permutation(own)] = np.arange(len(own)) % FOLDS
    return folds


def _right_sense_labels(
    points: Float[np.ndarray, "n M"],
    keys: Sequence[tuple[str, str]],
    learned: Int[np.ndarray, " l"],
    asked: Int[np.ndarray, " a"],
) -> Float[np.ndarray, " a"]:
    """1 where the centroids of some examples name the label of others, else 0."""
    labels, centroids = _centroids_of_sense_labels(points, keys, learned)
    right = np.zeros(len(asked))
    for place, number in enumerate(asked):
        word, label = keys[number]
        if word in centroids:
            right[place] = labels[word][int((centroids[word] @ points[number]).argmax())] == label
    return right


def _centroids_of_sense_labels(
    points: Float[np.ndarray, "n M"], keys: Sequence[tuple[str, str]], learned: Int[np.ndarray, " l"]
) -> tuple[dict[str, tuple[str, ...]], dict[str, Float[np.ndarray, "_ M"]]]:
    """Each word's labels and their centroids, unit length."""
    members: dict[str, dict[str, list[int]]] = {}
    for number in learned:
        word, label = keys[number]
        members.setdefault(word, {}).setdefault(label, []).append(int(number))
    labels = {word: tuple(sorted(own)) for word, own in members.items()}
    means = {
        word: unit(np.stack([points[own[label]].mean(0) for label in labels[word]])) for word, own in members.items()
    }
    return labels, means


def _sense_accuracy_by_word(
    keys: Sequence[tuple[str, str]],
    learned: Int[np.ndarray, " l"],
    asked: Int[np.ndarray, " a"],
    right: Float[np.ndarray, " a"],
) -> Accuracy:
    """Count by word what was answered right."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number in learned:
        word, label = keys[number]
        counts[word][label] += 1
    tallies: dict[str, tuple[int, int, int]] = {}
    for number, answer in zip(asked, right, strict=True):
        word, label = keys[number]
        most = max(sorted(counts[word]), key=counts[word].__getitem__, default="")
        before = tallies.get(word, (0, 0, 0))
        tallies[word] = (before[0] + int(answer), before[1] + 1, before[2] + int(most == label))
    return Accuracy(dict(sorted(tallies.items())))
