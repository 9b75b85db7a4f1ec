"""Batches: the same at every run, every pair once a time round, labels one token ahead."""

from collections import Counter

import pytest
import torch

from regard import RegardError
from regard.train.batches import IGNORED, NextToken, PairBatches


def test_blocks_are_labelled_with_the_next_token() -> None:
    ids = torch.arange(1000)
    data = NextToken(ids, block=17, batch=5, held_out=0.1, seed=3)
    batch, after = data.batch((0, 7))
    assert batch.ids.shape == (5, 17)
    assert after == (0, 8)
    assert torch.equal(batch.labels, batch.ids + 1)
    assert int(batch.labels.max()) < 900
    again, _ = NextToken(ids, block=17, batch=5, held_out=0.1, seed=3).batch((0, 7))
    assert torch.equal(batch.ids, again.ids)
    assert not torch.equal(batch.ids, data.batch((0, 8))[0].ids)
    held = torch.cat([each.ids.flatten() for each in data.validation()])
    assert torch.equal(held, torch.arange(900, 900 + len(held)))
    assert len(held) > 100 - 2 * 17


def pairs(count: int) -> list[tuple[list[int], list[int]]]:
    return [([10 + n] * (1 + n % 7) + [1], [500 + n] * (1 + n % 5) + [1]) for n in range(count)]


def test_every_pair_comes_once_a_time_round() -> None:
    data = PairBatches(pairs(211), pairs(13), start=0, filler=2, batch=50, seed=5)
    place, seen, orders = (0, 0), Counter(), []
    while place[0] < 2:
        if place[1] == 0:
            seen, order = Counter(), []
            orders.append(order)
        batch, place = data.batch(place)
        assert batch.source is not None
        assert batch.source.numel() <= 50 or len(batch.source) == 1
        assert batch.ids.numel() <= 50 or len(batch.ids) == 1
        seen.update(batch.source[:, 0].tolist())
        order.extend(batch.source[:, 0].tolist())
        assert bool((batch.ids[:, 0] == 0).all())
        real = batch.labels != IGNORED
        assert torch.equal(real, batch.mask)
        assert torch.equal(batch.ids[:, 1:][real[:, 1:]], batch.labels[:, :-1][real[:, 1:]])
        assert batch.tokens == int(real.sum())
        if place[1] == 0:
            assert seen == Counter(range(10, 221))
    assert orders[0] != orders[1]


def test_the_rows_of_a_team_are_all_of_them() -> None:
    data = PairBatches(pairs(37), pairs(3), start=0, filler=2, batch=90, seed=5)
    batch, _ = data.batch((0, 0))
    parts = [batch.part(rank, 2) for rank in (0, 1)]
    assert sum(part.tokens for part in parts) == batch.tokens
    alone = batch.part(0, len(batch.ids))
    assert [alone.part(rank, 2).tokens for rank in (0, 1)] == [alone.tokens, 0]


def test_texts_that_are_too_short() -> None:
    with pytest.raises(RegardError, match="a block of 17 needs 18"):
        NextToken(torch.arange(30), block=17, batch=5, held_out=0.1, seed=3)
    with pytest.raises(RegardError, match="needs to be a part between 0 and 1"):
        NextToken(torch.arange(300), block=17, batch=5, held_out=2.0, seed=3)
    with pytest.raises(RegardError, match="the longest sentence alone has 8"):
        PairBatches(pairs(37), pairs(3), start=0, filler=2, batch=7, seed=5)
