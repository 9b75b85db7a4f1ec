import numpy as np

from regard.corpus.asking.check_causes import check_causes
from regard.corpus.asking.clusters import Clusters
from regard.corpus.asking.places import WordSpan, embed_places
from regard.corpus.asking.vectors import unit

TEXT = "He withdrew money from the bank."
PLACE = WordSpan(TEXT, TEXT.index("bank"), TEXT.index("bank") + 4)


def clusters_at(*centroids: np.ndarray) -> Clusters:
    return Clusters(np.zeros(1, np.int64), unit(np.stack(centroids)), np.zeros(1, np.float32), {}, {})


def test_an_occurrence_that_lies_on_the_edge_changes_and_one_far_inside_does_not(minilm) -> None:
    import regard

    plain = embed_places(minilm, [PLACE], [5])[0, 0]
    without = minilm.trace(TEXT, interventions=[regard.ablate(regard.edge("bank", "money"))])["bank"].numpy()
    changed, _ = check_causes(minilm, [PLACE], clusters_at(plain, without), 0, ["money"], 5, most=9)
    assert (changed["money"].occurrences, changed["money"].changed) == (1, 1.0)
    assert changed["money"].moved > 0
    inside, _ = check_causes(minilm, [PLACE], clusters_at(plain, -plain), 0, ["money"], 5, most=9)
    assert (inside["money"].changed, inside["money"].random_changed) == (0.0, 0.0)


def test_an_excerpt_that_is_nearer_to_another_sense_is_left_out_and_counted(minilm) -> None:
    plain = embed_places(minilm, [PLACE], [5])[0, 0]
    found, astray = check_causes(minilm, [PLACE], clusters_at(-plain, plain), 0, ["money"], 5, most=9)
    assert (found, astray) == ({}, 1)
    assert check_causes(minilm, [PLACE], clusters_at(plain), 0, ["river"], 5, most=9) == ({}, 0)
