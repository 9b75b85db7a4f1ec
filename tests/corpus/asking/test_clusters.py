import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import silhouette_score

from regard.corpus.asking.clusters import SEPARATION, SILHOUETTE, TRIED, find_clusters, silhouette_and_separation
from regard.corpus.asking.vectors import unit
from regard.errors import RegardError
from tests.said.reading import numbers_in
from tests.support import MONEY, RIVER


def made(*sizes: int, width: int = 7, spread: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Groups of vectors around the axes, shuffled, and the group of each."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    vectors = np.eye(width)[groups] + spread * rng.standard_normal((len(groups), width))
    order = rng.permutation(len(groups))
    return (vectors * rng.uniform(0.5, 2, (len(groups), 1)))[order].astype(np.float32), groups[order]


@pytest.mark.parametrize("sizes", [(20, 11), (31, 17, 5), (29, 23, 13, 7)])
def test_groups_are_found_without_their_number_the_largest_first(sizes: tuple[int, ...]) -> None:
    vectors, groups = made(*sizes)
    found = find_clusters(vectors)
    assert found.k == len(sizes) == max(found.silhouettes, key=found.silhouettes.__getitem__)
    assert (found.labels == groups).all()
    assert found.sizes() == list(sizes)
    for sense in range(found.k):
        mean = unit(unit(vectors)[groups == sense].mean(0))
        np.testing.assert_allclose(found.centroids[sense], mean, atol=1e-6)
        cosines = unit(vectors) @ mean
        np.testing.assert_allclose(found.distances[groups == sense], 1 - cosines[groups == sense], atol=1e-6)
        best = max(np.flatnonzero(groups == sense), key=lambda n: cosines[n])
        assert found.examples(sense, 3)[0] == best
        assert len(found.examples(sense, 3)) == 3


def test_one_cloud_is_one_sense_and_k_is_kept_where_it_is_given() -> None:
    cloud = (np.ones(13) + 0.3 * np.random.default_rng(1).standard_normal((97, 13))).astype(np.float32)
    found = find_clusters(cloud)
    assert found.k == 1
    assert max(found.silhouettes.values()) < SILHOUETTE
    assert found.sizes() == [97]
    given_three = find_clusters(cloud, 3)
    assert given_three.k == 3
    measured = given_three.silhouettes[3], given_three.separations[3]
    assert measured == pytest.approx(silhouette_and_separation(cloud, given_three.labels), abs=1e-5)
    assert (given_three.assign(cloud) == given_three.labels).all()


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_both_measures_from_sums_are_those_of_all_pairs(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((19, 5)).astype(np.float32)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, 19 - k)])
    cosines, expected = unit(vectors) @ unit(vectors).T, []
    for n, label in enumerate(labels):
        own = (labels == label) & (np.arange(19) != n)
        nearest = max(cosines[n, labels == other].mean() for other in range(k) if other != label)
        expected.append(cosines[n, own].mean() - nearest if own.any() else 0.0)
    silhouette = silhouette_score(vectors, labels, metric="cosine")
    assert silhouette_and_separation(vectors, labels) == pytest.approx((silhouette, np.mean(expected)), abs=1e-6)


def test_small_differences_are_not_senses_however_clear_they_are() -> None:
    """Two clusters far apart for their size, and close for a word: its occurrences' cosines are 0.97 and more."""
    vectors, groups = made(20, 20, spread=0.01)
    close = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) + 5
    found = find_clusters(close)
    assert (found.k, found.silhouettes[2] > SILHOUETTE, found.separations[2] < SEPARATION) == (1, True, True)
    asked = find_clusters(close, 2)
    assert len(set(zip(asked.labels.tolist(), groups.tolist(), strict=True))) == 2
    assert asked.separations[2] == pytest.approx(found.separations[2])


def test_the_same_seed_gives_the_same_senses_and_length_does_not_count() -> None:
    vectors, _ = made(23, 19, spread=0.5)
    one, again, scaled = (
        find_clusters(vectors, 4, seed=3),
        find_clusters(vectors, 4, seed=3),
        find_clusters(vectors * 4, 4, seed=3),
    )
    assert (one.labels == again.labels).all()
    assert (one.centroids == again.centroids).all()
    assert (one.labels == scaled.labels).all()


def test_many_occurrences_choose_k_on_some_and_say_so() -> None:
    vectors, groups = made(TRIED, 701, width=5)
    found = find_clusters(vectors)
    assert found.k == 2
    assert (found.labels == groups).all()
    assert numbers_in(found.notes[0]) == ["5,000", f"{TRIED + 701:,}"]


def test_few_and_alike_occurrences() -> None:
    alike = np.ones((6, 5), dtype=np.float16)
    assert find_clusters(alike).sizes() == [6]
    assert find_clusters(alike[:1]).sizes() == [1]
    with pytest.raises(RegardError, match="k: given 2, but only 1 clusters differ"):
        find_clusters(alike, 2)
    with pytest.raises(RegardError, match="k: given 7, needs 1 to 6: the word has 6 occurrences"):
        find_clusters(alike, 7)
    with pytest.raises(RegardError, match="no occurrences"):
        find_clusters(alike[:0])


def test_real_senses_of_bank(minilm) -> None:
    """Twelve sentences of two senses, whose words around "bank" differ within each."""
    river = [RIVER, "Willows grew along the bank of the stream.", "The river burst its bank after the rain.",
             "The canoe was pulled up on the bank.", "Otters slid down the steep bank into the pool.",
             "Reeds covered the far bank of the lake."]  # fmt: skip
    money = [MONEY, "The bank raised its interest rates.", "The bank refused to give him a loan.",
             "She opened an account at the bank.", "Robbers held up the bank on Friday.",
             "My bank charges a fee for transfers."]  # fmt: skip
    traces = minilm.trace(river + money)
    found = find_clusters(np.stack([trace["bank"].squeeze().numpy() for trace in traces]), 2)
    assert len(set(found.labels[:6])) == len(set(found.labels[6:])) == 1
    assert found.labels[0] != found.labels[-1]
