"""A model computes in evaluation mode for a block, and each of its parts has its own mode again after it."""

import pytest
from torch import nn

from regard.nn.evaluation_mode import model_in_evaluation_mode


@pytest.mark.parametrize("fails", [False, True])
def test_each_part_has_its_own_mode_again(fails: bool) -> None:
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout(), nn.Linear(2, 2)), nn.Dropout())
    model[1].eval()  # as somebody trains a part of a model alone
    before = [module.training for module in model.modules()]
    assert len(set(before)) == 2
    with pytest.raises(KeyError) if fails else model_in_evaluation_mode(model), model_in_evaluation_mode(model):
        assert not any(module.training for module in model.modules())
        if fails:
            raise KeyError
    assert [module.training for module in model.modules()] == before
