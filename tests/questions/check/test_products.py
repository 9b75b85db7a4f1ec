"""Products of this machine against numpy's; a wrong one is named, though model and trace agree on it."""

import pytest
import torch

from regard.questions.check.claims import FAILS, HOLDS
from regard.questions.check.passes import weights_are_its_own
from regard.questions.check.products import SAID, products_are_numpys
from tests.questions.check.test_passes import reads_of


@pytest.mark.parametrize(("kind", "maps"), [("gpt2", 9), ("llama", 15), ("marian", 42)])  # gpt2 has Conv1D
def test_all_hold(kind: str, maps: int) -> None:
    found = list(products_are_numpys(reads_of(kind)[0]))
    assert [(each.outcome, each.said, each.of) for each in found] == [
        (HOLDS, SAID, f"{maps} of them {of}, cpu") for of in ("in its own pass", "in a trace")
    ]


def test_a_wrong_product_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    true = torch.nn.functional.linear

    def wrong(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        out = true(x, weight, bias)
        return out * 1.01 if tuple(weight.shape) == (32, 48) else out

    monkeypatch.setattr(torch.nn.functional, "linear", wrong)
    read = reads_of("llama")[0]
    found = list(products_are_numpys(read))
    assert [each.outcome for each in found] == [FAILS, FAILS]
    assert all("mlp.down_proj, 48 to 32" in each.where for each in found)
    assert [each.outcome for each in weights_are_its_own(read)] == [HOLDS]
