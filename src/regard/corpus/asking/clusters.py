"""Cluster the embeddings of one word's occurrences into senses, by k-means on vectors of length 1.

How many senses there are is chosen by the mean silhouette (Rousseeuw 1987) of k = 2 to 8, among those k whose smallest
cluster has two occurrences and 2 % of all. Below 0.25, where Kaufman and Rousseeuw (1990) see no substantial structure,
they are not told apart: all occurrences are one cluster, which says nothing of how many senses there are.

Why k-means: tried on all-MiniLM-L6-v2, last layer, HDBSCAN leaves 80 to 100 % of a word's occurrences without a cluster
(24 made sentences with "bank", the words of Moby Dick and of Shakespeare): in 384 dimensions a sense is no dense spot.
By this criterion made sentences with two senses have 0.43 ("bank", every one in its own), 0.39 ("spring"), 0.33
("seal"). In Moby Dick, sentence by sentence, those of "whale" (0.13), "sea" (0.22) and "mast" (0.13) are not told
apart, "fast" (made fast, fast fish, not slow) is two (0.30). Read in long windows "fast" has 0.23 and they are not:
what a store was made with counts. Under about 20 occurrences chance alone reaches 0.3. In both cases give k, or read
the examples.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from regard.corpus.asking.vectors import unit
from regard.corpus.extra import import_from_corpus_extra
from regard.errors import RegardError

THRESHOLD = 0.25  # mean silhouette from which senses are told apart
NOT_TOLD_APART = "could not be told apart"  # what all occurrences together are called where it is not reached
MOST = 8  # senses that are tried
SMALLEST = 0.02  # of all occurrences, that a sense needs where k is chosen
TRIED = 5_000  # occurrences that k is chosen on; all of them are clustered
STARTS = 10  # of k-means, the best of which is kept


@dataclass(frozen=True, eq=False)
class Clusters:
    """Occurrences by sense, the largest sense first.

    labels: each occurrence's sense. centroids: unit length. distances: 1 - cosine of each occurrence to its sense's
    centroid. silhouettes: the mean silhouette of each k that was tried (on at most 5,000 occurrences, see notes).
    """

    labels: Int[np.ndarray, " R"]
    centroids: Float[np.ndarray, "k M"]
    distances: Float[np.ndarray, " R"]
    silhouettes: dict[int, float]
    notes: tuple[str, ...] = ()

    @property
    def k(self) -> int:
        """Return how many senses there are."""
        return len(self.centroids)

    def sizes(self) -> list[int]:
        """Count the occurrences of each sense."""
        return [int(each) for each in np.bincount(self.labels, minlength=self.k)]

    def examples(self, sense: int, top: int) -> list[int]:
        """List the occurrences of a sense that are nearest to its centroid: the good examples of a dictionary."""
        own = np.flatnonzero(self.labels == sense)
        return [int(each) for each in own[np.argsort(self.distances[own], kind="stable")][:top]]

    def assign(self, vectors: Float[np.ndarray, "n M"]) -> Int[np.ndarray, " n"]:
        """Tell which sense's centroid is nearest to each vector, by cosine."""
        return (unit(vectors) @ self.centroids.T).argmax(1)


def find_clusters(vectors: Float[np.ndarray, "R M"], k: int | None = None, *, seed: int = 0) -> Clusters:
    """Cluster occurrences into k senses, or into as many as the silhouette says. The same seed gives the same senses.

    Raises:
        RegardError: there is no occurrence, k is no number from 1 on, or larger than there are different vectors.
    """
    if len(vectors) == 0:
        raise RegardError("senses: there are no occurrences to cluster")
    if k is not None and not 1 <= k <= len(vectors):
        raise RegardError(f"k: given {k}, needs 1 to {len(vectors)}: the word has {len(vectors)} occurrences")
    points = unit(vectors)
    silhouettes: dict[int, float] = {}
    notes: tuple[str, ...] = ()
    if k is None:
        sample = points
        if len(points) > TRIED:
            sample = points[np.sort(np.random.default_rng(seed).choice(len(points), TRIED, replace=False))]
            notes = (f"k was chosen on {TRIED:,} occurrences drawn from {len(points):,}; all of them are clustered",)
        silhouettes = _silhouettes(sample, seed)
        k = max(silhouettes, key=lambda each: silhouettes[each], default=1)
        if silhouettes.get(k, 0) < THRESHOLD:
            k = 1
    labels, centroids = _k_means(points, k, seed)
    if len(centroids) < k:
        raise RegardError(f"k: given {k}, but only {len(centroids)} clusters differ: needs a smaller k")
    order = np.argsort(-np.bincount(labels, minlength=k), kind="stable")
    labels, centroids = np.argsort(order)[labels], centroids[order]
    distances = 1 - np.einsum("rm,rm->r", points, centroids[labels])
    return Clusters(labels, centroids, distances, silhouettes, notes)


def silhouette_of_senses(vectors: Float[np.ndarray, "R M"], labels: Int[np.ndarray, " R"]) -> float:
    """Compute the mean silhouette by cosine distance, of two clusters or more; a cluster of one counts 0.

    The mean of 1 - cosine to many vectors of length 1 is 1 - cosine with their mean, so no R × R distances are needed.
    """
    points = unit(vectors).astype(np.float64)
    counts = np.bincount(labels)
    sums = np.stack([points[labels == each].sum(0) for each in range(len(counts))])
    total = counts - points @ sums.T  # of each occurrence to all of each cluster; 0 to itself
    rows = np.arange(len(points))
    own = total[rows, labels] / np.maximum(counts[labels] - 1, 1)
    others = total / counts
    others[rows, labels] = np.inf
    nearest = others.min(1)
    larger = np.maximum(own, nearest)
    scores = np.where(larger > 0, (nearest - own) / np.where(larger > 0, larger, 1), 0.0)
    return float(np.where(counts[labels] > 1, scores, 0.0).mean())


def _silhouettes(points: Float[np.ndarray, "R M"], seed: int) -> dict[int, float]:
    """The silhouette of each k whose clusters are large enough."""
    found = {}
    for k in range(2, min(MOST, len(points) // 2) + 1):
        labels, centroids = _k_means(points, k, seed)
        if len(centroids) == k and np.bincount(labels).min() >= max(2, SMALLEST * len(points)):
            found[k] = silhouette_of_senses(points, labels)
    return found


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
        labels = cluster.KMeans(k, n_init=STARTS, random_state=seed).fit(points).labels_.astype(np.int64)
    for _ in range(100):  # from means to directions: few steps, and few occurrences change
        _, labels = np.unique(labels, return_inverse=True)
        centroids = unit(np.stack([points[labels == each].mean(0) for each in range(labels.max() + 1)]))
        nearest = (points @ centroids.T).argmax(1)
        if (nearest == labels).all():
            break
        labels = nearest
    return labels, centroids
