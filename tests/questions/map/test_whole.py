"""A whole matrix in numbers, against the dense one in float64."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.explain.matrices import whole_map
from regard.questions.map.whole import CELLS, matrix, windowed
from tests.support import generation

TEXT = (
    "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, and "
    "nothing particular to interest me on shore, I thought I would sail about a little and see the watery part of the "
    "world. It is a way I have of driving off the spleen and regulating the circulation. "
)


@pytest.fixture(scope="module")
def trace(minilm):
    return minilm.trace(TEXT * 5, layers=[1])


@pytest.fixture(scope="module")
def llama():
    return generation.opened("llama", max_position_embeddings=512)


def dense_pairs(dense, special, far: int, count: int) -> list[tuple[float, int, int, int]]:
    """The largest distant weights as anyone would find them."""
    i = torch.arange(dense.shape[1])
    kept = ((i[:, None] - i).abs() > far) & ~special & ~special[:, None]
    flat = (dense * kept).flatten()
    places = [n for n in flat.sort(descending=True, stable=True).indices[:count].tolist() if flat[n] > 0]
    return [(float(flat[n]), *(int(at) for at in np.unravel_index(n, dense.shape))) for n in places]


def check(found, dense, tokens, head, far: int, top: int) -> None:
    """A matrix against the dense weights (H, L, L), in float64, of the heads that it shows."""
    length = len(tokens)
    special = torch.tensor([token.special for token in tokens])
    i = torch.arange(length, dtype=torch.float64)
    received = dense.sum(1).mean(0)
    others = dense.masked_fill(torch.eye(length).bool(), 0).amax((0, 1))
    assert found.unattended == int((others < 0.05).sum())
    by_token = {each.place.token: each for each in found.receivers}
    assert len(by_token) == top
    for n, each in by_token.items():
        assert each.received == pytest.approx(float(received[n]), rel=1e-4)
        assert each.share == pytest.approx(float(received[n]) / length, rel=1e-4)
        assert (each.largest or 0) == pytest.approx(float(others[n]) if others[n] >= 0.05 else 0, rel=1e-4)
        assert each.special == tokens[n].special
    assert sorted(by_token) == sorted(received.sort(descending=True).indices[:top].tolist())
    entropy = torch.special.entr(dense).sum(-1).mean(-1)
    distance = (dense * (i[:, None] - i).abs()).sum(-1).mean(-1)
    for n, each in enumerate(found.heads):
        assert each.head == (n if head is None else head)
        assert each.entropy == pytest.approx(float(entropy[n]), rel=1e-4)
        assert each.distance == pytest.approx(float(distance[n]), rel=1e-4)
        assert each.special == pytest.approx(float(dense[n][:, special].sum(-1).mean()), rel=1e-4, abs=1e-7)
        assert each.sink == 0
    expected = dense_pairs(dense, special, far, top)
    assert [each.weight for each in found.pairs] == pytest.approx([each[0] for each in expected], rel=1e-4)
    assert [each.weight for each in found.pairs] == sorted((each.weight for each in found.pairs), reverse=True)
    for each in found.pairs:
        number = each.head if head is None else 0
        assert float(dense[number, each.query.token, each.key.token]) == pytest.approx(each.weight, rel=1e-4)
        assert each.distance == abs(each.query.token - each.key.token) > far
    cells = min(CELLS, length)
    edges = [n * length // cells for n in range(cells + 1)]
    mean = dense.mean(0)
    for p in (0, cells // 3, cells - 1):
        for q in (0, cells // 2, cells - 1):
            cell = mean[edges[p] : edges[p + 1], edges[q] : edges[q + 1]]
            assert found.picture[p][q] == pytest.approx(float(cell.mean()), rel=1e-4, abs=1e-9)
    assert found.received[cells // 3] == pytest.approx(
        float(received[edges[cells // 3] : edges[cells // 3 + 1]].mean()), rel=1e-4
    )


@pytest.mark.parametrize(("head", "far"), [(None, 64), (7, 20), (2, 0)])
def test_the_matrix_of_a_text(trace, head, far: int) -> None:
    done: list[float] = []
    found = matrix(trace, 1, head, top=9, far=far, progress=done.append)
    dense = trace.attention[1].to(torch.float64).dense()
    assert (found.tokens, found.characters, found.head) == (len(trace.tokens), len(TEXT * 5), head)
    check(found, dense if head is None else dense[head : head + 1], trace.tokens, head, far, 9)
    assert sum(done) == pytest.approx(1)
    for each in found.receivers:
        if not each.special:
            assert trace.text[each.place.start : each.place.end] in each.place.around


def test_the_matrix_of_a_causal_model(llama) -> None:
    ids = torch.randint(97, (331,), generator=torch.Generator().manual_seed(3)).tolist()
    trace = llama.trace(ids=ids, layers=[1], logits=False)
    found = matrix(trace, 1, top=11, far=100)
    check(found, trace.attention[1].to(torch.float64).dense(), trace.tokens, None, 100, 11)
    assert all(each.key.token < each.query.token for each in found.pairs)
    assert found.picture[3][200] == 0


def check_band(band, read, weights, there, causal: bool) -> None:
    """Every cell against the mean of the weights (L, L) of its pairs, which are those that are there."""
    length = len(read.tokens)
    queries, keys = there.nonzero().T
    offsets = keys - queries
    assert band.first == int(offsets.min())
    assert band.first + band.count - 1 == (0 if causal else int(offsets.max()))
    assert (band.windows, band.window, band.stride) == (len(read.spans), 64, 29)
    down, across = len(band.values), len(band.values[0])
    assert (down, across) == (min(CELLS, length), min(CELLS, band.count))
    sums, pairs = torch.zeros(down, across, dtype=torch.float64), torch.zeros(down, across, dtype=torch.long)
    for query, key in zip(queries.tolist(), keys.tolist(), strict=True):
        offset = key - query - band.first
        if offset < band.count:
            p = next(p for p in range(down - 1, -1, -1) if p * length // down <= query)
            q = next(q for q in range(across - 1, -1, -1) if q * band.count // across <= offset)
            sums[p, q] += weights[query, key]
            pairs[p, q] += 1
    for p in range(down):
        for q in range(across):
            found, count = band.values[p][q], int(pairs[p, q])
            assert (found is None) == (count == 0)
            if found is not None:
                assert found == pytest.approx(float(sums[p, q]) / count, rel=1e-5, abs=1e-12)
    assert float(sums.sum()) == pytest.approx(float(weights.sum()), rel=1e-9)  # no weight is beyond the offsets


@pytest.mark.parametrize(("causal", "head"), [(False, None), (False, 5), (True, None)])
def test_the_matrix_of_windows(minilm, llama, causal: bool, head) -> None:
    """Rows put together by hand from each token's own window."""
    if causal:
        text = " ".join(map(str, torch.randint(97, (311,), generator=torch.Generator().manual_seed(4)).tolist()))
        read = llama.trace(ids=[int(n) for n in text.split()], window=64, stride=29, layers=[1], logits=False)
    else:
        read = minilm.trace(TEXT * 2, window=64, stride=29, layers=[1])
    done: list[float] = []
    found = windowed(read.plan, read.windows, 1, head, top=8, far=23, progress=done.append)
    length = len(read.tokens)
    heads = read.windows[0].attention[1].shape[0]
    dense, aside = torch.zeros(heads, length, length, dtype=torch.float64), torch.zeros(heads, dtype=torch.float64)
    distance, entropy = torch.zeros(heads, dtype=torch.float64), torch.zeros(heads, dtype=torch.float64)
    there = torch.zeros(length, length, dtype=torch.bool)
    for n in range(length):
        window, place = read.place(n)
        row = window.attention[1].to(torch.float64)[:, place]
        spans = torch.arange(row.shape[1])
        distance += (row * (spans - place).abs()).sum(-1)
        entropy += torch.special.entr(row).sum(-1)
        for own, token in enumerate(window.tokens):
            whole = own + n - place
            if token.special:
                aside += row[:, own]
            if 0 <= whole < length and read.tokens[whole].special == token.special:
                dense[:, n, whole] = row[:, own]
                there[n, whole] = True
    chosen = slice(None) if head is None else slice(head, head + 1)
    for k, each in enumerate(found.heads):
        number = k if head is None else head
        assert each.distance == pytest.approx(float(distance[number]) / length, rel=1e-4)
        assert each.entropy == pytest.approx(float(entropy[number]) / length, rel=1e-4)
        assert each.special == pytest.approx(float(aside[number]) / length, rel=1e-4, abs=1e-7)
    received = dense[chosen].sum(1).mean(0)
    best = received.sort(descending=True)
    assert [each.place.token for each in found.receivers] == best.indices[:8].tolist()
    assert [each.received for each in found.receivers] == pytest.approx(best.values[:8].tolist(), rel=1e-4)
    others = dense[chosen].masked_fill(torch.eye(length).bool(), 0).amax((0, 1))
    assert [each.largest or 0 for each in found.receivers] == pytest.approx(
        [float(others[n]) if others[n] >= 0.05 else 0 for n in best.indices[:8]], rel=1e-4
    )
    assert found.unattended == int((others < 0.05).sum())
    special = torch.tensor([token.special for token in read.tokens])
    expected = dense_pairs(dense[chosen], special, 23, 8)
    assert [each.weight for each in found.pairs] == pytest.approx([each[0] for each in expected], rel=1e-4)
    assert [(each.query.token, each.key.token) for each in found.pairs] == [each[2:] for each in expected]
    assert found.picture is None
    check_band(found.band, read, dense[chosen].mean(0), there, causal)
    edges = [n * length // len(found.received) for n in range(len(found.received) + 1)]
    expected = [float(received[a:b].mean()) for a, b in pairwise(edges)]
    assert found.received == pytest.approx(expected, rel=1e-4)
    assert sum(done) == pytest.approx(1)
    assert read.plan.note() in found.about.statuses[0].notes


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000), st.integers(2, 41), st.integers(1, 3), st.integers(1, 7), st.integers(0, 12),
    st.sampled_from([0.1, 2.0, 9.0]), st.booleans(), st.sampled_from([1, 3, 16]),
)  # fmt: skip
def test_distant_weights_are_found_whatever_hides_them(
    seed: int, length: int, heads: int, count: int, far: int, sharp: float, causal: bool, listed: int
) -> None:
    """Heads that look near, everywhere or far: unlisted weights are read again where they may count."""
    generator = torch.Generator().manual_seed(seed)
    query, key = (torch.randn(1, heads, length, 5, generator=generator) * sharp**0.5 for _ in range(2))
    i = torch.arange(length)
    bias = -((i[:, None] - i).abs() * torch.rand(heads, 1, 1, generator=generator))[None]
    weights = regard.attend(query, key, key, bias=bias, causal=causal).weights
    weights = regard.AttentionMap(weights.query, weights.key, weights.rule, offset=0, ndim=3)
    special = torch.rand(length, generator=generator) < 0.15
    values, keys = weights.top(listed)
    found = whole_map(weights, values, keys, special, far, count).found()
    dense = weights.dense().double()
    expected = dense_pairs(dense, special, far, count)
    assert [each[0] for each in found] == pytest.approx([each[0] for each in expected], rel=1e-5)
    for weight, h, a, b in found:
        assert float(dense[h, a, b]) == pytest.approx(weight, rel=1e-5)
        assert abs(a - b) > far
        assert not special[a]
        assert not special[b]
    assert len({each[1:] for each in found}) == len(found)


def test_heads_and_layers_that_are_not_there(trace) -> None:
    with pytest.raises(regard.RegardError, match="head 12 is out of range: .* has heads 0 to 11"):
        matrix(trace, 1, 12)
    with pytest.raises(regard.RegardError, match=r"attention\[0\] was not kept"):
        matrix(trace, 0)


def test_of_one_window_the_whole_matrix_is_shown(minilm) -> None:
    text = f"  {TEXT}"  # blanks that the window itself has not
    plan, windows = minilm.stream(text, window=256, layers=[1])
    found, whole = windowed(plan, windows, 1, 3), matrix(minilm.trace(text, layers=[1]), 1, 3)
    assert found.band is None
    torch.testing.assert_close(torch.tensor(found.picture), torch.tensor(whole.picture), atol=1e-7, rtol=1e-5)
    assert found.receivers == whole.receivers
    assert plan.note() in found.about.statuses[0].notes
