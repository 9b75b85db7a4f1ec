"""The softmax from row maximum and row sum: block by block, with sinks, and in rows that see nothing."""

import pytest
import torch

from regard.attention import scores as score_tiles
from regard.attention.masks import dense
from regard.attention.scores import ScoreRule
from regard.attention.softmax import (
    add_sink_to_rows,
    finite_max,
    row_max_sum,
    sink_share,
    softmax_rescaling,
    softmax_weights,
)
from tests.attention.cases import random

WHOLE = (slice(0, 2), slice(0, 4), slice(0, 7))


@pytest.mark.parametrize("cols", [1, 3, 1024])
@pytest.mark.parametrize("sinks", [None, torch.tensor([0.0, 9.0, -9.0, -torch.inf])])
def test_in_blocks_of_any_size(cols: int, sinks: torch.Tensor | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_tiles, "TILE_COLS", cols)
    monkeypatch.setattr(score_tiles, "TILE_SCORES", {"cpu": cols, "other": cols})
    query, key, allowed = 3 * random(0, 2, 4, 7, 5), random(1, 2, 2, 11, 5), random(2, 7, 11) > -0.5
    allowed[3] = False
    rule = ScoreRule(0.7, mask=dense(allowed), sinks=sinks)
    row_max, row_sum = row_max_sum(query, key, rule, *WHOLE)
    scores = (query @ key.repeat_interleave(2, 1).mT * 0.7).masked_fill(~allowed, -torch.inf)
    column = torch.full((4,), -torch.inf) if sinks is None else sinks
    joined = torch.cat([scores, column.double()[None, :, None, None].expand(2, 4, 7, 1)], -1)
    torch.testing.assert_close(row_max, joined.amax(-1))
    right = joined.softmax(-1).nan_to_num(0.0)  # what sees nothing at all has no weights
    torch.testing.assert_close(softmax_weights(scores, row_max, row_sum), right[..., :-1])
    share = sink_share(rule, WHOLE[1], row_max, row_sum)
    assert (share is None) == (sinks is None)
    if share is not None:
        torch.testing.assert_close(share, right[..., -1])
        assert share[0, :, 3].tolist() == [1.0, 1.0, 1.0, 0.0]
    else:
        assert (row_sum[:, :, 3] == 0).all()


def test_rescaling_of_a_sum_when_its_maximum_rises() -> None:
    old, new = torch.tensor([-torch.inf, -torch.inf, 1.0, 2.0]), torch.tensor([-torch.inf, 5.0, 3.0, 2.0])
    torch.testing.assert_close(softmax_rescaling(old, new), torch.tensor([0.0, 0.0, torch.e**-2, 1.0]))
    assert finite_max(old).tolist() == [0.0, 0.0, 1.0, 2.0]


def test_a_sink_joins_maximum_and_sum() -> None:
    row_max, row_sum = torch.tensor([2.0, -torch.inf, -torch.inf]), torch.tensor([3.0, 0.0, 0.0])
    new_max, new_sum = add_sink_to_rows(row_max, row_sum, torch.tensor([4.0, 4.0, -torch.inf]))
    assert new_max.tolist() == [4.0, 4.0, -torch.inf]
    torch.testing.assert_close(new_sum, torch.tensor([3 * torch.e**-2 + 1, 1.0, 0.0]))
