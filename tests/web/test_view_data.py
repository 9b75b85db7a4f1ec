import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.explain.weights.alignment import align
from regard.explain.wording import number
from regard.text.tokens import Token
from regard.trace.trace import Trace
from regard.web.view_data import alignment_data, comparable, comparison_data, comparison_name, generation_data
from tests.support.own_models import TARGETS, TEXTS, pair


def test_the_calls_that_both_have() -> None:
    before, after = {(0, 0): 0, (1, 0): 1, (2, 0): 2}, {(0, 0): 3, (2, 0): 4}
    assert comparison_data("a", before, after) == {"name": "a", "before": [0, 2], "after": [3, 4]}
    assert comparison_data("a", before, {(5, 0): 1}) is None


def test_what_was_done_names_a_comparison(bank: list[Trace]) -> None:
    one, other = bank[0], replace(bank[0])
    assert comparable(one, other)
    assert not comparable(one, bank[1])
    other.status = replace(one.status, notes=(*one.status.notes, "ablated: head 5 of layer 3"))
    assert comparison_name(one, other, ("a", "b")) == "before and after: ablated: head 5 of layer 3"
    assert comparison_name(other, one, ("a", "b")) == "a and b"


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


def test_the_best_call_is_that_of_the_layer_whose_rows_write() -> None:
    found = align(pair().trace(TEXTS[0], target=TARGETS[0]), layers=(1, 0))
    data: Any = alignment_data(found, {(0, 0): 4, (1, 0): 5})
    assert data["calls"] == [4, 5]
    assert (data["best"]["call"], data["best"]["head"]) == (5, None)
    said = "Of 2 layers layer 1, as tokens are written, and layer 0, as they are read, agree most: here by "
    assert data["best"]["why"] == f"{said}{number(found.agreement)} of at most 1."
    without: Any = alignment_data(found, {(0, 0): 4})
    assert without["best"]["call"] == 4
    assert without["best"]["why"].endswith(" of at most 1; the first of them is left out of this page.")
    assert alignment_data(found, {}) is None
