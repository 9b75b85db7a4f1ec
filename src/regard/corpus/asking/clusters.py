"""Cluster the embeddings of one word's occurrences into senses, by k-means on vectors of length 1.

The number of senses is the k of 2 to 8 with the largest mean silhouette (Rousseeuw 1987), among those k whose smallest
cluster has two occurrences and 2 % of all. Senses are told apart if it reaches 0.25, below which Kaufman and Rousseeuw
(1990) see no substantial structure, and if the mean separation reaches 0.08. Otherwise all occurrences are one cluster,
which says nothing of the number of senses.

An occurrence's separation is its mean cosine with the others of its cluster, less that with the nearest other cluster:
the silhouette without its division by the larger distance. Why both: the silhouette has no scale. Words with one sense
reach the same silhouettes as words with several, as small differences between their occurrences are divided by
distances that are as small. `benchmarks/senses.py` gives the figures. The separation's threshold was tuned on the last
layer of all-MiniLM-L6-v2.

Why k-means: tried on the same vectors, HDBSCAN leaves 80 to 100 % of a word's occurrences without a cluster: in 384
dimensions a sense is no dense spot. Average linkage, Ward, spectral clustering and Gaussian mixtures are no better.

Whether a word of the context gives an occurrence its sense is checked by ablation: the edges from the occurrence's
tokens to that word's tokens are cut in every layer and head, and the occurrence is embedded again: does it now lie
nearest to another sense's centroid? Beside it stands the same for a word of the excerpt that is drawn at random. What
reaches the occurrence through other tokens stays: a small share doesn't say that the word counts for nothing.
"""

import math
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from regard.capture.interventions.names import Ablate, ablate, edge
from regard.corpus.asking.occurrences import DocumentPart
from regard.corpus.asking.vectors import WordSpan, layer_states_as_array, unit, word_at, word_there
from regard.corpus.settings import normal
from regard.errors import RegardError
from regard.lazy import import_from_corpus_extra
from regard.models.model import Model
from regard.text.words import word_spans
from regard.trace.trace import Trace

SILHOUETTE, SEPARATION = 0.25, 0.08  # means from which senses are told apart
NOT_SEPARATED = "not separated"  # name of the single group of all occurrences if a measure is too small
MOST = 8  # senses that are tried
SMALLEST = 0.02  # of all occurrences, that a sense needs where k is chosen
TRIED = 5_000  # occurrences that k is chosen on; all of them are clustered
STARTS = 10  # of k-means, the best of which is kept
MIN_Z = 2.0  # of a marker word
REACH = 200  # characters of an excerpt on either side of the occurrence
LEAST = 2  # occurrences of a sense in which a word has to stand


@dataclass(frozen=True, eq=False)
class Clusters:
    """Occurrences by sense, the largest sense first.

    labels: each occurrence's sense. centroids: unit length. distances: 1 - cosine of each occurrence to its sense's
    centroid. silhouettes, separations: the means of each k that was tried (on at most 5,000 occurrences, see notes), or
    of the k that was given.
    """

    labels: Int[np.ndarray, " R"]
    centroids: Float[np.ndarray, "k M"]
    distances: Float[np.ndarray, " R"]
    silhouettes: dict[int, float]
    separations: dict[int, float]
    notes: tuple[str, ...] = ()

    @property
    def k(self) -> int:
        """Return the number of senses."""
        return len(self.centroids)

    def separates(self, k: int) -> bool:
        """Return whether so many senses lie far enough apart to be told apart; True if that was not measured."""
        return self.silhouettes.get(k, SILHOUETTE) >= SILHOUETTE and self.separations.get(k, SEPARATION) >= SEPARATION

    def sizes(self) -> list[int]:
        """Count the occurrences of each sense."""
        return [int(each) for each in np.bincount(self.labels, minlength=self.k)]

    def examples(self, sense: int, top: int) -> list[int]:
        """List the occurrences of a sense that are nearest to its centroid: the good examples of a dictionary."""
        own = np.flatnonzero(self.labels == sense)
        return [int(each) for each in own[np.argsort(self.distances[own], kind="stable")][:top]]

    def assign(self, vectors: Float[np.ndarray, "n M"]) -> Int[np.ndarray, " n"]:
        """Find the sense whose centroid is nearest to each vector, by cosine."""
        return (unit(vectors) @ self.centroids.T).argmax(1)


def find_clusters(vectors: Float[np.ndarray, "R M"], k: int | None = None, *, seed: int = 0) -> Clusters:
    """Cluster occurrences into k senses, or into as many as the silhouette suggests. A seed repeats the senses."""
    if len(vectors) == 0:
        raise RegardError("senses: there are no occurrences to cluster")
    if k is not None and not 1 <= k <= len(vectors):
        raise RegardError(f"k: got {k}, expected 1 to {len(vectors)}: the word has {len(vectors)} occurrences")
    points = unit(vectors)
    tried: dict[int, tuple[float, float]] = {}
    notes: tuple[str, ...] = ()
    if k is None:
        sample = points
        if len(points) > TRIED:
            sample = points[np.sort(np.random.default_rng(seed).choice(len(points), TRIED, replace=False))]
            notes = (
                f"The number of senses was chosen on a random sample of {TRIED:,} of {len(points):,} occurrences.",
            )
        for number in range(2, min(MOST, len(sample) // 2) + 1):
            labels, centroids = _k_means(sample, number, seed)
            if len(centroids) == number and np.bincount(labels).min() >= max(2, SMALLEST * len(sample)):
                tried[number] = silhouette_and_separation(sample, labels)
        k = max(tried, key=lambda each: tried[each], default=1)
        if k > 1 and (tried[k][0] < SILHOUETTE or tried[k][1] < SEPARATION):
            k = 1
    labels, centroids = _k_means(points, k, seed)
    if len(centroids) < k:
        raise RegardError(f"k: got {k}, but only {len(centroids)} clusters differ: pass a smaller k")
    if k > 1 and not tried:
        tried = {k: silhouette_and_separation(points, labels)}
    order = np.argsort(-np.bincount(labels, minlength=k), kind="stable")
    labels, centroids = np.argsort(order)[labels], centroids[order]
    distances = 1 - np.einsum("rm,rm->r", points, centroids[labels])
    silhouettes, separations = ({each: means[n] for each, means in tried.items()} for n in range(2))
    return Clusters(labels, centroids, distances, silhouettes, separations, notes)


def silhouette_and_separation(vectors: Float[np.ndarray, "R M"], labels: Int[np.ndarray, " R"]) -> tuple[float, float]:
    """Compute both means by cosine, of two clusters or more; an occurrence alone in its cluster counts 0.

    The mean cosine with many vectors of length 1 is the product with their mean, so no R × R cosines are needed.
    """
    points = unit(vectors).astype(np.float64)
    counts = np.bincount(labels)
    sums = np.stack([points[labels == each].sum(0) for each in range(len(counts))])
    total = points @ sums.T  # of each occurrence with all of each cluster
    rows = np.arange(len(points))
    own = (total[rows, labels] - (points**2).sum(1)) / np.maximum(counts[labels] - 1, 1)
    others = total / counts
    others[rows, labels] = -np.inf
    nearest = others.max(1)
    apart = np.where(counts[labels] > 1, own - nearest, 0.0)
    larger = 1 - np.minimum(own, nearest)
    return float((apart / np.where(larger > 0, larger, 1)).mean()), float(apart.mean())


def _k_means(
    points: Float[np.ndarray, "R M"], k: int, seed: int
) -> tuple[Int[np.ndarray, " R"], Float[np.ndarray, "found M"]]:
    """Each point's cluster and the clusters' unit centroids, of which the cosine-nearest is each point's own.

    Fewer than k where fewer points differ.
    """
    if k == 1:
        return np.zeros(len(points), dtype=np.int64), unit(points.mean(0, keepdims=True))
    cluster, poor = (
        import_from_corpus_extra("sklearn.cluster"),
        import_from_corpus_extra("sklearn.exceptions").ConvergenceWarning,
    )
    limits = import_from_corpus_extra("threadpoolctl").threadpool_limits
    with warnings.catch_warnings(), limits(1, "openmp"):  # threads add up in the order in which they end
        warnings.simplefilter("ignore", poor)  # fewer different points than clusters: seen below
        labels = cluster.KMeans(k, n_init=STARTS, random_state=seed % (1 << 32)).fit(points).labels_.astype(np.int64)
    for _ in range(100):  # from means to directions: few steps, and few occurrences change
        _, labels = np.unique(labels, return_inverse=True)
        centroids = unit(np.stack([points[labels == each].mean(0) for each in range(labels.max() + 1)]))
        nearest = (points @ centroids.T).argmax(1)
        if (nearest == labels).all():
            break
        labels = nearest
    return labels, centroids


def excerpt_around_occurrence(part: DocumentPart, start: int, end: int, reach: int = REACH) -> WordSpan:
    """Cut the text around an occurrence out of a part of a document, to whole words."""
    first, last = start - part.start, end - part.start
    left, right = max(0, first - reach), min(len(part.text), last + reach)
    if left > 0:
        blank = re.search(r"\s", part.text[left:first])
        left = left + blank.end() if blank else left
    if right < len(part.text):
        blanks = list(re.finditer(r"\s", part.text[last:right]))
        right = last + blanks[-1].start() if blanks else right
    return WordSpan(part.text[left:right], first - left, last - left)


def words_around_occurrence(place: WordSpan) -> dict[str, list[tuple[int, int]]]:
    """Find where each other word of an excerpt stands, by how it is looked up, as the rows of a store have them."""
    found: dict[str, list[tuple[int, int]]] = {}
    for start, end in word_spans(place.text):
        name = normal(place.text[start:end])
        if (end <= place.start or start >= place.end) and name != normal(place.form):
            found.setdefault(name, []).append((start, end))
    return found


def log_odds_z(near: int, size: int, near_others: int, others: int) -> float:
    """Compute z of the log-odds ratio of a word being near a sense: the ratio over its standard error.

    Half an occurrence is added to each count (Haldane–Anscombe), so z is finite even if the word is never near others.

    Args:
        near: Occurrences of the sense that have the word near them, of `size`.
        near_others: Occurrences of the other senses that have it near them, of `others`.
    """
    counts = [count + 0.5 for count in (near, size - near, near_others, others - near_others)]
    ratio = counts[0] * counts[3] / (counts[1] * counts[2])
    return math.log(ratio) / math.sqrt(sum(1 / count for count in counts))


def marker_words(contexts: Sequence[set[str]], labels: Sequence[int], sense: int, top: int) -> list[tuple[str, float]]:
    """Return the words that mark a sense with their z, the largest z first, by the words near each occurrence.

    A marker word is near at least two occurrences of the sense, and its z is larger than 2.
    """
    own: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for words, label in zip(contexts, labels, strict=True):
        (own if label == sense else others).update(words)
    size = sum(label == sense for label in labels)
    scores = {word: log_odds_z(count, size, others[word], len(labels) - size) for word, count in own.items()}
    markers = [(word, z) for word, z in scores.items() if own[word] >= LEAST and z > MIN_Z]
    return sorted(markers, key=lambda marker: (-marker[1], marker[0]))[:top]


@dataclass(frozen=True)
class CutEffect:
    """The effect of ablation on occurrences of a sense.

    changed: the share that changes its nearest centroid. moved: the mean of 1 - cosine between the embeddings with and
    without. random_changed, random_moved: the same for a word drawn at random.
    """

    occurrences: int
    changed: float
    random_changed: float
    moved: float
    random_moved: float


def check_causes(
    model: Model,
    places: Sequence[WordSpan],
    clusters: Clusters,
    sense: int,
    words: Sequence[str],
    layer: int,
    *,
    most: int,
    seed: int = 0,
) -> tuple[dict[str, CutEffect], int]:
    """Cut each of some words from occurrences of a sense, in at most so many of them a word, drawn at random.

    Returns what was found for each word, and how many excerpts were left out, because in them alone, without the rest
    of the document, the occurrence is nearer to another sense.
    """
    random = np.random.default_rng(seed)
    around = [words_around_occurrence(place) for place in places]
    wanted = {}
    for word in words:  # of the excerpts that have it, and another word that can be drawn
        having = [n for n, known in enumerate(around) if len(known) > 1 and word in known]
        wanted[word] = set(having if len(having) <= most else random.choice(having, most, replace=False).tolist())
    effects: dict[str, list[tuple[float, ...]]] = {word: [] for word in words}  # of each occurrence, as in `CutEffect`
    astray = 0
    for number in sorted({n for own in wanted.values() for n in own}):
        place = places[number]
        causes = [word for word in words if number in wanted[word]]
        done = _embed_with_causes_cut(model, place, causes, layer, random)
        if int(clusters.assign(done[0][None])[0]) != sense:
            astray += 1
            continue
        changed = clusters.assign(done[1:]) != sense
        moved = 1 - unit(done[1:]) @ unit(done[0])
        for n, word in enumerate(causes):
            effects[word].append((*changed[2 * n : 2 * n + 2], *moved[2 * n : 2 * n + 2]))
    return {word: CutEffect(len(rows), *np.mean(rows, 0).tolist()) for word, rows in effects.items() if rows}, astray


def _embed_with_causes_cut(
    model: Model, place: WordSpan, causes: Sequence[str], layer: int, random: np.random.Generator
) -> Float[np.ndarray, "runs M"]:
    """The occurrence's embedding: as it is, then for each cause with it cut and with another word cut."""
    plain = model.trace(place.text, layers=[layer], logits=False, attention_outputs=False)
    word, by_name = word_at(plain, place), words_around_occurrence(place)
    sets: list[list[Ablate]] = []
    for cause in causes:
        names = sorted(set(by_name) - {cause})
        for name in (cause, names[int(random.integers(len(names)))]):
            spans = [WordSpan(place.text, *span) for span in by_name[name]]
            there = [other for span in spans if (other := word_there(plain, span)) is not None]
            sets.append([ablate(edge(word, other)) for other in there])
    rows = {0: layer_states_as_array(plain, layer)[list(word.tokens)].mean(0)}
    if layer == len(plain.hidden_states) - 2:  # the last: many runs at once, which keep that one alone
        for number, trace in model.ablated(place.text, sets, logits=False):
            assert isinstance(trace, Trace)
            rows[number + 1] = trace.last_hidden_state[list(word.tokens)].mean(0).detach().float().cpu().numpy()
    else:
        for number, each in enumerate(sets):
            trace = model.trace(place.text, layers=[layer], logits=False, attention_outputs=False, interventions=each)
            rows[number + 1] = layer_states_as_array(trace, layer)[list(word.tokens)].mean(0)
    return np.stack([rows[n] for n in range(len(sets) + 1)])
