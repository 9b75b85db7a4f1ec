"""Contributions, attributions and statistics of maps; a wrong statistic is named."""

import pytest
import torch

from regard.attention.attention_map import AttentionMap
from regard.errors import InexactError
from regard.explain.causes import contributions as module
from regard.questions.check.claims import FAILS, HOLDS
from regard.questions.check.passes import Read
from regard.questions.check.sums import attributions_add_up, contributions_add_up, statistics_are_of_the_weights
from tests.questions.check.test_passes import reads_of

SUMS = (contributions_add_up, attributions_add_up, statistics_are_of_the_weights)


@pytest.mark.parametrize("kind", ["gpt2", "gpt_oss", "marian"])  # one with sinks, one with cross-attention
def test_all_hold(kind: str) -> None:
    read = reads_of(kind)[0]
    found = [each for measure in SUMS for each in measure(read)]
    assert [each.outcome for each in found] == [HOLDS] * 4
    assert [each.area for each in found] == ["contributions", "attribution", "statistics", "statistics"]


@pytest.mark.parametrize(
    ("name", "where"),
    [("entropy", "entropy of layer 1"), ("received", "received of layer 1"), ("pooled", "the picture of layer 1")],
)
def test_a_wrong_statistic_is_named(name: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, true = reads_of("gpt2")[0], getattr(AttentionMap, name)
    maps = [read.trace.sides[0].attention[n].query for n in range(2)]

    def wrong(self: AttentionMap, *given: int) -> torch.Tensor:
        out: torch.Tensor = true(self, *given)
        return out + 1e-2 * bool(torch.equal(self.query, maps[1]))

    monkeypatch.setattr(AttentionMap, name, wrong)
    found = list(statistics_are_of_the_weights(read))
    assert [(each.outcome, each.where) for each in found] == [(FAILS, where)] * 2


def test_parts_that_do_not_add_up_are_inexact(monkeypatch: pytest.MonkeyPatch) -> None:
    read: Read = reads_of("gpt2")[0]
    monkeypatch.setattr(module, "TOLERANCE", -1.0)
    with pytest.raises(InexactError, match="the parts' sum differs"):
        list(contributions_add_up(read))
