"""Three ways to make one number of those of a word's tokens."""

import pytest
import torch

from regard.errors import RegardError
from regard.explain.causes.word_sums import cause_scores_by_word
from tests.support.own_models import no_checks_of_annotations

__all__ = ["no_checks_of_annotations"]  # the fixture


def test_three_ways_to_join() -> None:
    scores = torch.tensor([1.0, 2.0, -5.0, 0.5], dtype=torch.float64)
    groups = [(0,), (1, 2, 3)]
    assert cause_scores_by_word(scores, groups).tolist() == [1.0, -2.5]
    assert cause_scores_by_word(scores, groups, "absmax").tolist() == [1.0, -5.0]
    assert cause_scores_by_word(scores, groups, "mean").tolist() == pytest.approx([1.0, -2.5 / 3])


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_another_way_is_refused() -> None:
    with pytest.raises(RegardError, match="join: given 'most', needs one of 'sum', 'mean', 'absmax'"):
        cause_scores_by_word(torch.ones(2), [(0, 1)], "most")  # type: ignore[arg-type]
