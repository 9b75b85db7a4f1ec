"""Row maxima and row sums of a map: they make weights of scores, and are computed once."""

import pytest
import torch

from regard.attention import row_sums
from regard.attention.row_sums import RowSums
from regard.attention.scores import ScoreRule
from tests.attention.cases import random
from tests.attention.test_attention_map import some_map


def test_row_max_and_sum_make_weights_of_scores() -> None:
    for sinks in (None, random(5, 6)):
        seen = some_map(sinks=sinks, mask=torch.arange(7)[:, None] != 2)
        top, total = seen.row_max_sum()
        if sinks is None:  # what sees nothing has nothing; with a sink it has the sink alone
            assert (top[:, :, 2] == -torch.inf).all()
            assert not total[:, :, 2].any()
        else:
            assert torch.equal(top[:, :, 2], sinks.expand_as(top[:, :, 2]))
            assert (total[:, :, 2] == 1).all()
        over = seen.scores[...] - top[..., None].nan_to_num(neginf=0.0)
        torch.testing.assert_close(torch.exp(over) / total[..., None].clamp(min=1e-300), seen.dense())


@pytest.mark.parametrize("sinks", [None, random(3, 4)])
def test_every_row_is_computed_once(sinks: torch.Tensor | None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, compute = [], row_sums.of_queries

    def spy(query: object, key: object, rule: object, batch: int, head: int, rows: slice | torch.Tensor) -> object:
        asked.append((batch, head, rows.tolist() if isinstance(rows, torch.Tensor) else (rows.start, rows.stop)))
        return compute(query, key, rule, batch, head, rows)

    monkeypatch.setattr(row_sums, "of_queries", spy)
    monkeypatch.setattr(row_sums, "BAND", 3)
    query, key = random(0, 2, 4, 7, 5), random(1, 2, 2, 11, 5)
    sums, run = RowSums(query, key, ScoreRule(0.4, sinks=sinks)), slice(0, 7)
    part = sums.of(slice(0, 1), torch.tensor([2]), slice(0, 3))
    assert asked == [(0, 2, (0, 3))]
    scores = query @ key.repeat_interleave(2, 1).mT * 0.4
    at_hand = sums.of_scores(scores[1:, :2], slice(1, 2), slice(0, 2), run)
    assert len(asked) == 1
    maxima, totals = sums.of(slice(0, 2), slice(0, 4), run)
    assert len(asked) == 1 + 2 + 3 * 3 + 2 * 3  # the rest of head 2 of text 0, its other heads, two heads of text 1
    assert all(torch.equal(a, b[:1, 2:3, :3]) for a, b in zip(part, (maxima, totals), strict=True))
    assert all(torch.equal(a, b[1:, :2]) for a, b in zip(at_hand, (maxima, totals), strict=True))
    joined = scores if sinks is None else torch.cat([scores, sinks[None, :, None, None].expand(2, 4, 7, 1)], -1)
    torch.testing.assert_close(maxima, joined.amax(-1))
    torch.testing.assert_close(maxima + totals.log(), joined.logsumexp(-1))
    sums.of(slice(0, 2), slice(0, 4), torch.tensor([6, 1]))
    assert len(asked) == 18
