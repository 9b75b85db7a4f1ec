"""Senses as clusters of embeddings, and words of the context that give them, by ablation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import silhouette_score

from regard.corpus.asking.clusters import (
    SEPARATION,
    SILHOUETTE,
    TRIED,
    Clusters,
    check_causes,
    excerpt_around_occurrence,
    find_clusters,
    log_odds_z,
    marker_words,
    silhouette_and_separation,
    words_around_occurrence,
)
from regard.corpus.asking.occurrences import DocumentPart
from regard.corpus.asking.vectors import WordSpan, embed_spans, unit
from regard.errors import RegardError
from tests.said.reading import numbers_in
from tests.support import MONEY, RIVER

CONTEXTS = [{"the", "river"}, {"the", "river", "mud"}, {"the", "money"}, {"the", "money"}, {"the", "loan", "money"}]
LABELS = [0, 0, 1, 1, 1]


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
    with pytest.raises(RegardError, match="k: got 2, but only 1 clusters differ"):
        find_clusters(alike, 2)
    with pytest.raises(RegardError, match="k: got 7, expected 1 to 6: the word has 6 occurrences"):
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


def test_excerpts_end_where_words_end() -> None:
    part = DocumentPart(100, "one two three bank four five six", "a", None, {})
    assert excerpt_around_occurrence(part, 114, 118, 7) == WordSpan("three bank four", 6, 10)
    assert excerpt_around_occurrence(part, 114, 118, 99) == WordSpan(part.text, 14, 18)
    part = DocumentPart(0, "aaaabankbbbb", "a", None, {})
    assert excerpt_around_occurrence(part, 4, 8, 2) == WordSpan("aabankbb", 2, 6)


def test_the_word_itself_is_no_context() -> None:
    assert set(words_around_occurrence(WordSpan("A Bank; a bank of Clay.", 2, 6))) == {"a", "of", "clay"}


def test_parts_of_a_compound_are_words_of_their_own() -> None:
    """Else cutting "fast-fish" would cut "fast" from itself."""
    assert words_around_occurrence(WordSpan("A fast-fish is a Fish", 2, 6)) == {
        "a": [(0, 1), (15, 16)], "fish": [(7, 11), (17, 21)], "is": [(12, 14)]
    }  # fmt: skip


def test_z_of_the_log_odds_ratio_by_hand() -> None:
    """7 of 10 compared with 0 of 10: half a count more in each cell."""
    z = math.log((7.5 * 10.5) / (3.5 * 0.5)) / math.sqrt(1 / 7.5 + 1 / 3.5 + 1 / 0.5 + 1 / 10.5)
    assert log_odds_z(7, 10, 0, 10) == pytest.approx(z) == pytest.approx(2.401, abs=1e-3)
    assert log_odds_z(0, 10, 7, 10) == pytest.approx(-z)
    assert log_odds_z(4, 9, 4, 9) == 0
    assert log_odds_z(10, 10, 10, 10) == 0


def test_marker_words_are_near_one_sense_more_often_by_two_standard_errors() -> None:
    contexts = [{"the", "river", "mud"}] * 5 + [{"the", "river"}] * 2 + [{"the"}] * 3 + [{"the", "money"}] * 10
    contexts[0] = contexts[0] | {"rare"}
    labels = [0] * 10 + [1] * 10
    assert marker_words(contexts, labels, 0, 9) == [("river", log_odds_z(7, 10, 0, 10))]  # mud: z = 1.93
    assert marker_words(contexts, labels, 1, 9) == [("money", log_odds_z(10, 10, 0, 10))]
    assert marker_words(contexts, labels, 1, 0) == []
    assert marker_words(contexts, [0] * 20, 0, 9) == []
    assert log_odds_z(1, 1, 0, 1000) > 2
    assert marker_words([{"rare"}, *[set()] * 1000], [0] + [1] * 1000, 0, 9) == []  # near a single occurrence


def test_words_without_a_difference_mark_no_sense() -> None:
    assert marker_words([{"a", "b"}, {"a"}] * 20, [0, 0, 1, 1] * 10, 0, 9) == []


TEXT = "He withdrew money from the bank."
PLACE = WordSpan(TEXT, TEXT.index("bank"), TEXT.index("bank") + 4)


def clusters_at(*centroids: np.ndarray) -> Clusters:
    return Clusters(np.zeros(1, np.int64), unit(np.stack(centroids)), np.zeros(1, np.float32), {}, {})


def test_an_occurrence_that_lies_on_the_edge_changes_and_one_far_inside_does_not(minilm) -> None:
    import regard

    plain = embed_spans(minilm, [PLACE], [5])[0, 0]
    without = minilm.trace(TEXT, interventions=[regard.ablate(regard.edge("bank", "money"))])["bank"].numpy()
    changed, _ = check_causes(minilm, [PLACE], clusters_at(plain, without), 0, ["money"], 5, limit=9)
    assert (changed["money"].occurrences, changed["money"].changed) == (1, 1.0)
    assert changed["money"].moved > 0
    inside, _ = check_causes(minilm, [PLACE], clusters_at(plain, -plain), 0, ["money"], 5, limit=9)
    assert (inside["money"].changed, inside["money"].random_changed) == (0.0, 0.0)


def test_an_excerpt_that_is_nearer_to_another_sense_is_left_out_and_counted(minilm) -> None:
    plain = embed_spans(minilm, [PLACE], [5])[0, 0]
    found, astray = check_causes(minilm, [PLACE], clusters_at(-plain, plain), 0, ["money"], 5, limit=9)
    assert (found, astray) == ({}, 1)
    assert check_causes(minilm, [PLACE], clusters_at(plain), 0, ["river"], 5, limit=9) == ({}, 0)
