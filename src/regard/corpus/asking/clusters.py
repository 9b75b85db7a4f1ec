"""Cluster the embeddings of a word's occurrences into senses, by k-means on vectors of length 1.

The number of senses is the k from 2 to 8 with the largest mean silhouette (Rousseeuw 1987). Each cluster must have at
least two occurrences and 2 % of all occurrences. Senses count as separated if the silhouette reaches 0.25 and the mean
separation reaches 0.08. If not, all occurrences form a single cluster, and the number of senses is unknown. Kaufman and
Rousseeuw (1990) see no substantial structure below a silhouette of 0.25.

An occurrence's separation is its mean cosine with the rest of its cluster minus its mean cosine with the nearest other
cluster. The silhouette divides this difference by the larger distance, so it ignores scale. A word with a single sense
can reach the silhouette of a word with several, because small differences are divided by small distances.
`benchmarks/senses.py` measures this. The separation's threshold was tuned on the last layer of all-MiniLM-L6-v2.

Why k-means: on the same vectors, HDBSCAN leaves 80 to 100 % of a word's occurrences without a cluster, because senses
aren't dense in 384 dimensions. Average linkage, Ward, spectral clustering and Gaussian mixtures are no better.

Ablation checks whether a context word determines an occurrence's sense. The attention edges from the occurrence's
tokens to that word's tokens are ablated in every layer and head, and the occurrence is embedded again. The check counts
how often another sense's centroid is then nearest. It does the same with a random word of the excerpt. Paths through
other tokens remain, so a small effect doesn't prove that the word has none.
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
from regard.corpus.asking.vectors import WordSpan, layer_states_as_array, unit, word_tokens, word_tokens_or_none
from regard.corpus.settings import lookup_key
from regard.errors import RegardError
from regard.lazy import import_from_corpus_extra
from regard.models.model import Model
from regard.text.words import word_spans
from regard.trace.trace import Trace

SILHOUETTE, SEPARATION = 0.25, 0.08  # smallest mean values of separated senses
NOT_SEPARATED = "not separated"  # name of the single cluster if senses aren't separated
MOST = 8  # largest k that is tried
SMALLEST = 0.02  # smallest fraction of occurrences in a sense when k is chosen
TRIED = 5_000  # k is chosen on at most this many occurrences, then all are clustered
STARTS = 10  # k-means starts; the best result is used
MIN_Z = 2.0  # a marker word's z-score is above this
REACH = 200  # characters of an excerpt on either side of the occurrence
LEAST = 2  # a marker word is near at least this many occurrences of its sense


@dataclass(frozen=True, eq=False)
class Clusters:
    """The clusters of a word's occurrences, one per sense, the largest first.

    labels: each occurrence's sense. centroids: unit vectors. distances: 1 - cosine of each occurrence with its sense's
    centroid. silhouettes, separations: the mean for each tried k (on at most 5,000 occurrences, see `notes`), or only
    for the requested k.
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
        """Return whether k senses reach both thresholds, or k wasn't measured."""
        return self.silhouettes.get(k, SILHOUETTE) >= SILHOUETTE and self.separations.get(k, SEPARATION) >= SEPARATION

    def sizes(self) -> list[int]:
        """Return the number of occurrences of each sense."""
        return [int(count) for count in np.bincount(self.labels, minlength=self.k)]

    def examples(self, sense: int, top: int) -> list[int]:
        """Return the `top` occurrences nearest to a sense's centroid."""
        members = np.flatnonzero(self.labels == sense)
        return [int(member) for member in members[np.argsort(self.distances[members], kind="stable")][:top]]

    def assign(self, vectors: Float[np.ndarray, "n M"]) -> Int[np.ndarray, " n"]:
        """Return the sense with the nearest centroid for each vector, by cosine."""
        return (unit(vectors) @ self.centroids.T).argmax(1)


def find_clusters(vectors: Float[np.ndarray, "R M"], k: int | None = None, *, seed: int = 0) -> Clusters:
    """Cluster occurrences' vectors into k senses, by default the k with the largest silhouette."""
    if len(vectors) == 0:
        raise RegardError("senses: there are no occurrences to cluster")
    if k is not None and not 1 <= k <= len(vectors):
        raise RegardError(f"k: got {k}, expected 1 to {len(vectors)}: the word has {len(vectors)} occurrences")
    points = unit(vectors)
    scores: dict[int, tuple[float, float]] = {}
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
                scores[number] = silhouette_and_separation(sample, labels)
        k = max(scores, key=lambda n: scores[n], default=1)
        if k > 1 and (scores[k][0] < SILHOUETTE or scores[k][1] < SEPARATION):
            k = 1
    labels, centroids = _k_means(points, k, seed)
    if len(centroids) < k:
        raise RegardError(f"k: got {k}, but only {len(centroids)} clusters differ: pass a smaller k")
    if k > 1 and not scores:
        scores = {k: silhouette_and_separation(points, labels)}
    order = np.argsort(-np.bincount(labels, minlength=k), kind="stable")
    labels, centroids = np.argsort(order)[labels], centroids[order]
    distances = 1 - np.einsum("rm,rm->r", points, centroids[labels])
    silhouettes, separations = ({count: means[n] for count, means in scores.items()} for n in range(2))
    return Clusters(labels, centroids, distances, silhouettes, separations, notes)


def silhouette_and_separation(vectors: Float[np.ndarray, "R M"], labels: Int[np.ndarray, " R"]) -> tuple[float, float]:
    """Return the clusters' mean silhouette and separation by cosine. A lone occurrence in a cluster counts as 0.

    A vector's mean cosine with a set of unit vectors is its dot product with their mean: no R × R matrix is needed.
    """
    points = unit(vectors).astype(np.float64)
    counts = np.bincount(labels)
    sums = np.stack([points[labels == label].sum(0) for label in range(len(counts))])
    total = points @ sums.T  # dot product of each occurrence with each cluster's sum
    rows = np.arange(len(points))
    same_cluster = (total[rows, labels] - (points**2).sum(1)) / np.maximum(counts[labels] - 1, 1)
    others = total / counts
    others[rows, labels] = -np.inf
    nearest = others.max(1)
    difference = np.where(counts[labels] > 1, same_cluster - nearest, 0.0)
    larger = 1 - np.minimum(same_cluster, nearest)
    return float((difference / np.where(larger > 0, larger, 1)).mean()), float(difference.mean())


def _k_means(
    points: Float[np.ndarray, "R M"], k: int, seed: int
) -> tuple[Int[np.ndarray, " R"], Float[np.ndarray, "found M"]]:
    """Return each point's cluster and the centroids, scaled to length 1. A point's centroid is the nearest by cosine.

    There are fewer than k clusters if there are fewer than k distinct points.
    """
    if k == 1:
        return np.zeros(len(points), dtype=np.int64), unit(points.mean(0, keepdims=True))
    cluster, warning = (
        import_from_corpus_extra("sklearn.cluster"),
        import_from_corpus_extra("sklearn.exceptions").ConvergenceWarning,
    )
    limits = import_from_corpus_extra("threadpoolctl").threadpool_limits
    with warnings.catch_warnings(), limits(1, "openmp"):  # several threads would sum in a varying order
        warnings.simplefilter("ignore", warning)  # fewer distinct points than clusters: handled below
        labels = cluster.KMeans(k, n_init=STARTS, random_state=seed % (1 << 32)).fit(points).labels_.astype(np.int64)
    for _ in range(100):  # with centroids scaled to length 1, a few occurrences change cluster
        _, labels = np.unique(labels, return_inverse=True)
        centroids = unit(np.stack([points[labels == label].mean(0) for label in range(labels.max() + 1)]))
        nearest = (points @ centroids.T).argmax(1)
        if (nearest == labels).all():
            break
        labels = nearest
    return labels, centroids


def excerpt_around_occurrence(part: DocumentPart, start: int, end: int, reach: int = REACH) -> WordSpan:
    """Return the text around an occurrence: at most `reach` characters on each side, cut to whole words."""
    first, last = start - part.start, end - part.start
    left, right = max(0, first - reach), min(len(part.text), last + reach)
    if left > 0:
        blank = re.search(r"\s", part.text[left:first])
        left = left + blank.end() if blank else left
    if right < len(part.text):
        blanks = list(re.finditer(r"\s", part.text[last:right]))
        right = last + blanks[-1].start() if blanks else right
    return WordSpan(part.text[left:right], first - left, last - left)


def words_around_occurrence(excerpt: WordSpan) -> dict[str, list[tuple[int, int]]]:
    """Return the spans of all other words in an excerpt, by lookup key."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for start, end in word_spans(excerpt.text):
        name = lookup_key(excerpt.text[start:end])
        if (end <= excerpt.start or start >= excerpt.end) and name != lookup_key(excerpt.form):
            spans.setdefault(name, []).append((start, end))
    return spans


def log_odds_z(near: int, size: int, near_others: int, others: int) -> float:
    """Return the z-score of the log-odds ratio that a word is near one sense rather than the others.

    Half an occurrence is added to each count (Haldane–Anscombe), so z is finite even if the word is never near others.

    Args:
        near: Number of the sense's `size` occurrences with the word nearby.
        near_others: Number of the other senses' `others` occurrences with the word nearby.
    """
    counts = [count + 0.5 for count in (near, size - near, near_others, others - near_others)]
    ratio = counts[0] * counts[3] / (counts[1] * counts[2])
    return math.log(ratio) / math.sqrt(sum(1 / count for count in counts))


def marker_words(contexts: Sequence[set[str]], labels: Sequence[int], sense: int, top: int) -> list[tuple[str, float]]:
    """Return the words that mark a sense, with their z-scores, the largest first.

    A marker word is near at least two occurrences of the sense, with z > 2. contexts: each occurrence's nearby words.
    """
    counts: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for words, label in zip(contexts, labels, strict=True):
        (counts if label == sense else others).update(words)
    size = sum(label == sense for label in labels)
    scores = {word: log_odds_z(count, size, others[word], len(labels) - size) for word, count in counts.items()}
    markers = [(word, z) for word, z in scores.items() if counts[word] >= LEAST and z > MIN_Z]
    return sorted(markers, key=lambda marker: (-marker[1], marker[0]))[:top]


@dataclass(frozen=True)
class CutEffect:
    """The effect of ablating attention from a sense's occurrences to one of their context words.

    changed: the fraction of occurrences that are then nearest to another centroid. moved: the mean of 1 - cosine
    between the embeddings before and after. random_changed, random_moved: the same for a random word.
    """

    occurrences: int
    changed: float
    random_changed: float
    moved: float
    random_moved: float


def check_causes(
    model: Model,
    excerpts: Sequence[WordSpan],
    clusters: Clusters,
    sense: int,
    words: Sequence[str],
    layer: int,
    *,
    limit: int,
    seed: int = 0,
) -> tuple[dict[str, CutEffect], int]:
    """Ablate attention to each context word in at most `limit` random occurrences of a sense. Return the effects.

    Also return the number of left-out excerpts, in which the occurrence is nearer to another sense without the rest of
    the document.
    """
    random = np.random.default_rng(seed)
    contexts = [words_around_occurrence(excerpt) for excerpt in excerpts]
    samples = {}
    for word in words:  # excerpts with this word and another, from which to draw the random word
        usable = [n for n, context in enumerate(contexts) if len(context) > 1 and word in context]
        samples[word] = set(usable if len(usable) <= limit else random.choice(usable, limit, replace=False).tolist())
    effects: dict[str, list[tuple[float, ...]]] = {word: [] for word in words}  # per occurrence, as in `CutEffect`
    excluded = 0
    for number in sorted({n for numbers in samples.values() for n in numbers}):
        excerpt = excerpts[number]
        causes = [word for word in words if number in samples[word]]
        embeddings = _embed_with_causes_cut(model, excerpt, causes, layer, random)
        if int(clusters.assign(embeddings[0][None])[0]) != sense:
            excluded += 1
            continue
        changed = clusters.assign(embeddings[1:]) != sense
        moved = 1 - unit(embeddings[1:]) @ unit(embeddings[0])
        for n, word in enumerate(causes):
            effects[word].append((*changed[2 * n : 2 * n + 2], *moved[2 * n : 2 * n + 2]))
    return {word: CutEffect(len(rows), *np.mean(rows, 0).tolist()) for word, rows in effects.items() if rows}, excluded


def _embed_with_causes_cut(
    model: Model, excerpt: WordSpan, causes: Sequence[str], layer: int, random: np.random.Generator
) -> Float[np.ndarray, "runs M"]:
    """Return an occurrence's embedding without ablation, then per cause with it and with a random word ablated."""
    plain = model.trace(excerpt.text, layers=[layer], logits=False, attention_outputs=False)
    word, by_name = word_tokens(plain, excerpt), words_around_occurrence(excerpt)
    sets: list[list[Ablate]] = []
    for cause in causes:
        names = sorted(set(by_name) - {cause})
        for name in (cause, names[int(random.integers(len(names)))]):
            spans = [WordSpan(excerpt.text, *span) for span in by_name[name]]
            targets = [other for span in spans if (other := word_tokens_or_none(plain, span)) is not None]
            sets.append([ablate(edge(word, other)) for other in targets])
    rows = {0: layer_states_as_array(plain, layer)[list(word.tokens)].mean(0)}
    if layer == len(plain.hidden_states) - 2:  # batched runs, which keep only the last layer's states
        for number, trace in model.ablated(excerpt.text, sets, logits=False):
            assert isinstance(trace, Trace)
            rows[number + 1] = trace.last_hidden_state[list(word.tokens)].mean(0).detach().float().cpu().numpy()
    else:
        for number, cuts in enumerate(sets):
            trace = model.trace(excerpt.text, layers=[layer], logits=False, attention_outputs=False, interventions=cuts)
            rows[number + 1] = layer_states_as_array(trace, layer)[list(word.tokens)].mean(0)
    return np.stack([rows[n] for n in range(len(sets) + 1)])
