"""Find the words of the context that mark one sense of a word: they occur near it more often than near the others.

The measure is the logarithm of the odds ratio: the odds that a word is near an occurrence of the sense, over the odds
that it is near an occurrence of the others. z is the log-odds ratio over its standard error. Half an occurrence is
added to each of the four counts (Haldane–Anscombe correction). A word that is never near the others then has a finite
z, which is small if there are few occurrences. A word counts once per occurrence.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

from regard.corpus.asking.occurrences import Part
from regard.corpus.asking.places import Place
from regard.corpus.settings import normal
from regard.text.words import word_spans

MIN_Z = 2.0  # of a marker word
REACH = 200  # characters of an excerpt on either side of the occurrence
LEAST = 2  # occurrences of a sense in which a word has to stand


def excerpt_around_occurrence(part: Part, start: int, end: int, reach: int = REACH) -> Place:
    """Cut the text around an occurrence out of a part of a document, to whole words."""
    first, last = start - part.start, end - part.start
    left, right = max(0, first - reach), min(len(part.text), last + reach)
    if left > 0:
        blank = re.search(r"\s", part.text[left:first])
        left = left + blank.end() if blank else left
    if right < len(part.text):
        blanks = list(re.finditer(r"\s", part.text[last:right]))
        right = last + blanks[-1].start() if blanks else right
    return Place(part.text[left:right], first - left, last - left)


def words_around_occurrence(place: Place) -> dict[str, list[tuple[int, int]]]:
    """Find where each other word of an excerpt stands, by how it is looked up, as the rows of a store have them."""
    found: dict[str, list[tuple[int, int]]] = {}
    for start, end in word_spans(place.text):
        name = normal(place.text[start:end])
        if (end <= place.start or start >= place.end) and name != normal(place.form):
            found.setdefault(name, []).append((start, end))
    return found


def near(place: Place) -> set[str]:
    """List the words around an occurrence, as they are looked up, itself left out."""
    return set(words_around_occurrence(place))


def log_odds_z(near: int, size: int, near_others: int, others: int) -> float:
    """Compute z of the log-odds ratio of a word being near a sense.

    Args:
        near: Occurrences of the sense that have the word near them, of `size`.
        near_others: Occurrences of the other senses that have it near them, of `others`.
    """
    counts = [count + 0.5 for count in (near, size - near, near_others, others - near_others)]
    ratio = counts[0] * counts[3] / (counts[1] * counts[2])
    return math.log(ratio) / math.sqrt(sum(1 / count for count in counts))


def marker_words(contexts: Sequence[set[str]], labels: Sequence[int], sense: int, top: int) -> list[tuple[str, float]]:
    """Return the words that mark a sense with their z, the largest z first.

    A marker word is near at least two occurrences of the sense, and its z is larger than 2.

    Args:
        contexts: The words near each occurrence.
        labels: The sense of each occurrence.
        top: How many words to return.
    """
    own: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for words, label in zip(contexts, labels, strict=True):
        (own if label == sense else others).update(words)
    size = sum(label == sense for label in labels)
    scores = {word: log_odds_z(count, size, others[word], len(labels) - size) for word, count in own.items()}
    markers = [(word, z) for word, z in scores.items() if own[word] >= LEAST and z > MIN_Z]
    return sorted(markers, key=lambda marker: (-marker[1], marker[0]))[:top]
