import math

import pytest

from regard.explain.causes.rank_correlation import spearman


def test_rank_correlation() -> None:
    assert spearman([1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 41.0]) == pytest.approx(1)
    assert spearman([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1)
    tied = spearman([1.0, 2.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0])
    assert tied == pytest.approx(0.9486832980505138)  # ties share their mean rank
    assert math.isnan(spearman([1.0, 1.0], [1.0, 2.0]))
