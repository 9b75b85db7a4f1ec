import math
from typing import Any

import pytest
import torch

from regard.text.tokens import Token
from regard.web.generation import generation_data


def test_each_step_has_what_was_chosen_and_what_else_was_likely() -> None:
    tokens = [Token(n, f"t{n}", n, n + 1, n, False) for n in (4, 1, 7)]
    logits = torch.full((3, 8), -math.inf)
    logits[0, :3] = torch.tensor([0.5, 0.25, 0.25]).log()
    logits[1] = 0.0
    data: Any = generation_data(2, 1, tokens, logits, lambda n: f"n{n}")
    assert (data["text"], data["first"], len(data["steps"])) == (2, 1, 2)
    one, other = data["steps"]
    assert (one["chosen"], one["probability"]) == ("t1", pytest.approx(0.25))
    assert one["others"][0] == ["n0", pytest.approx(0.5)]
    assert one["others"][1] == ["n2", pytest.approx(0.25)]
    assert other["probability"] == pytest.approx(1 / 8)
    assert len(other["others"]) == 5
    assert "n7" not in [name for name, _ in other["others"]]
    assert generation_data(0, 2, tokens, logits)["steps"][0]["others"][0][0].startswith("id ")  # type: ignore[index]
    assert generation_data(0, 3, tokens, logits)["steps"] == []
