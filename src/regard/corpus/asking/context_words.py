"""Find the words of the context that set one sense of a word apart from its others.

Named are words that stand near a larger share of the sense's occurrences than of the others'. Their order is that of
weighted log-odds with an informative Dirichlet prior (Monroe, Colaresi and Quinn 2008, "Fightin' Words"): of each word
the log-odds to stand near the sense less those to stand near the others, over its standard deviation. The prior has the
proportions of all contexts together, at the weight of 100 words, so that rare words count little and words that stand
everywhere, such as "the", not at all. A word counts once an occurrence.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from regard.corpus.asking.occurrences import Part
from regard.corpus.asking.places import Place
from regard.corpus.settings import normal
from regard.text.words import word_spans

PRIOR = 100.0  # words
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


def log_odds(contexts: Sequence[set[str]], labels: Sequence[int], sense: int) -> dict[str, float]:
    """Compute how much each word sets a sense apart: standard deviations of its log-odds, for words near that sense.

    contexts, labels: of each occurrence the words around it, and its sense.
    """
    own: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for words, label in zip(contexts, labels, strict=True):
        (own if label == sense else others).update(words)
    n, m = own.total(), others.total()
    if not n or not m:
        return {}
    found = {}
    for word, count in sorted(own.items()):
        other = others[word]
        prior = PRIOR * (count + other) / (n + m)
        odds = np.log((count + prior) / (n + PRIOR - count - prior))
        other_odds = np.log((other + prior) / (m + PRIOR - other - prior))
        found[word] = float((odds - other_odds) / np.sqrt(1 / (count + prior) + 1 / (other + prior)))
    return found


def telling_words(contexts: Sequence[set[str]], labels: Sequence[int], sense: int, top: int) -> list[tuple[str, float]]:
    """Rank the words that set a sense apart from the others, each near two of its occurrences at least.

    contexts: the words near each occurrence. labels: its sense. top: how many words to return.
    Each stands near a larger share of its occurrences than of the others': log-odds are of all words near, so that
    where contexts are short a word can have more of the words and fewer of the occurrences.
    """
    counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for words, label in zip(contexts, labels, strict=True):
        counts[label == sense].update(words)
    own, size = counts[True], sum(label == sense for label in labels)
    others, rest = counts[False], len(labels) - size
    scores = log_odds(contexts, labels, sense)
    ranked = sorted(
        (
            (score, word)
            for word, score in scores.items()
            if own[word] >= LEAST and score > 0 and own[word] * rest > others[word] * size
        ),
        reverse=True,
    )
    return [(word, score) for score, word in ranked[:top]]
