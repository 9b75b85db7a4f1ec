"""Ablations, patches and steering against the model's own code; one that is not made is found."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from regard.errors import RegardError
from regard.questions.check.changes import (
    attention_is_patched,
    edges_are_ablated,
    feed_forwards_are_patched,
    heads_are_ablated,
    states_are_patched,
)  # fmt: skip
from regard.questions.check.changing import Changing
from regard.questions.check.claims import FAILS, HOLDS, Claim
from tests.questions.check.test_changing import text

Measure = Callable[[Changing], Iterator[Claim]]
ALL: dict[Measure, int] = {  # and how many claims each makes of a decoder
    heads_are_ablated: 4, edges_are_ablated: 4, states_are_patched: 3, attention_is_patched: 6,
    feed_forwards_are_patched: 2,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["gpt2", "llama", "opt", "marian"])
def test_all_hold(kind: str) -> None:
    changing = text(kind)
    for measure, count in ALL.items():
        found = list(measure(changing))
        assert [each.outcome for each in found] == [HOLDS] * len(found), measure.__name__
        assert len(found) == count + (
            kind in ("marian", "t5") and measure in (states_are_patched, feed_forwards_are_patched)
        )
        assert all(0 < (each.bound or 0.0) <= 1e-3 for each in found)


def test_what_rules_out_a_patch_is_refused_and_the_rest_measured() -> None:
    patched = attention_is_patched(text("gemma2"))
    assert [next(patched).said.split()[2] for _ in range(4)] == ["head_outputs"] * 2 + ["values"] * 2
    with pytest.raises(RegardError, match="have a softcap"):
        next(patched)
    assert {each.outcome for each in heads_are_ablated(text("gemma2"))} == {HOLDS}


@pytest.mark.parametrize("measure", ALL, ids=lambda each: each.__name__)
def test_a_change_that_is_not_made_fails(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    changing = text("gpt2")
    true = type(changing.model).trace

    def unchanged(self: Any, *given: Any, interventions: Any = (), **options: Any) -> Any:
        return true(self, *given, **options)

    monkeypatch.setattr(type(changing.model), "trace", unchanged)
    found = list(measure(changing))
    assert {each.outcome for each in found if each.said != "results with heads ablated at once"} == {FAILS}
