from typing import Any

from regard.explain.weights.alignment import align
from regard.web.translation import alignment_data
from tests.support.own_models import TARGETS, TEXTS, pair


def test_the_best_call_is_that_of_the_layer_whose_rows_write() -> None:
    found = align(pair().trace(TEXTS[0], target=TARGETS[0]), layers=(1, 0))
    data: Any = alignment_data(found, {(0, 0): 4, (1, 0): 5})
    assert data["calls"] == [4, 5]
    assert (data["best"]["call"], data["best"]["head"]) == (5, None)
    said = "Of 2 layers layer 1, as tokens are written, and layer 0, as they are read, agree most: here by "
    assert data["best"]["why"] == f"{said}{found.agreement:.2f} of at most 1."
    without: Any = alignment_data(found, {(0, 0): 4})
    assert without["best"]["call"] == 4
    assert without["best"]["why"].endswith(" of at most 1; the first of them is left out of this page.")
    assert alignment_data(found, {}) is None
