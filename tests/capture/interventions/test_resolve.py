"""What may stand in a list of interventions."""

import pytest
import torch

import regard
from regard.capture.interventions.resolve import check_interventions, intervention_names_tokens


def test_what_is_no_intervention() -> None:
    for given, says in (
        (regard.head(0, 1), r"got regard.head\(...\), expected regard.ablate\(regard.head\(...\)\)"),
        (regard.edge(0, 1), r"got regard.edge\(...\), expected regard.ablate\(regard.edge"),
        ("head 3", r"got str, expected regard.ablate\(...\), regard.patch\(...\) or regard.steer\(...\)"),
    ):
        with pytest.raises(regard.RegardError, match=f"interventions: {says}"):
            check_interventions([given])


def test_which_mean_tokens_of_one_text() -> None:
    vector = torch.zeros(3)
    given = [
        regard.ablate(regard.head(0, 1)),
        regard.ablate(regard.edge(0, 1)),
        regard.patch("values", layer=0, source="zero"),
        regard.steer(vector, layer=0),
        regard.steer(vector, layer=0, at=1),
    ]
    assert [intervention_names_tokens(each) for each in given] == [False, True, True, False, True]
