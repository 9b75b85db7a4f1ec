"""Weights beyond what distance and the key account for, held against loops over all queries."""

import math

import pytest
import torch

from regard import AttentionMap, attend
from regard.attention.masks import Mask
from regard.attention.scores import ScoreRule
from regard.explain.weights.sinks import sinks
from regard.explain.weights.specific_weights import (
    DISTINCTIVE,
    SAMPLED,
    distinctive_pairs,
    divergence_maps,
    divergences,
    largest_divergences,
    most_specific_weight,
    row_divergences,
    specific_weights,
    word_links,
)
from regard.text.tokens import Token
from regard.trace.status import Status
from regard.trace.trace import Trace

STATUS = Status("made up", (), "cpu", "float32", None, 0, None)


def made_up(length: int, heads: int = 3, *, causal: bool = False, seed: int = 0, scale: float = 2.0) -> Trace:
    """A trace of one layer of random attention, a word a token."""
    generator = torch.Generator().manual_seed(seed)
    query, key = (scale * torch.randn(heads, length, 5, generator=generator) for _ in range(2))
    weights = attend(query[None], key[None], key[None], causal=causal).weights
    weights = AttentionMap(weights.query, weights.key, weights.rule, offset=weights.offset, ndim=3)
    tokens = tuple(Token(n, "w", 2 * n, 2 * n + 1, n, False) for n in range(length))
    text = "w " * length
    one = torch.zeros(length, 2)
    return Trace(text, tokens, None, None, None, None, (one, one), one, None, (weights,), (None,), STATUS)


def mean(values: list[float]) -> float:
    seen = [value for value in values if value > 0]
    return sum(seen) / max(1, len(seen))


@pytest.mark.parametrize("causal", [False, True])
def test_what_others_give_is_that_of_loops(causal: bool) -> None:
    trace = made_up(11, causal=causal)
    dense = trace.attention[0].dense().double()
    queries = torch.tensor([0, 3, 10])
    _, expected, _ = row_divergences(trace.attention[0], queries)
    for h in range(3):
        for at, i in enumerate(queries.tolist()):
            for j in range(11):
                others = [q for q in range(11) if q != i]
                far = {q: float(dense[h, q, q + j - i]) for q in others if 0 <= q + j - i < 11}
                near = [value for q, value in far.items() if abs(q - i) <= 4]
                same = [float(dense[h, q, j]) for q in others]
                distance = max(mean(list(far.values())), mean(near))
                equal = float(1 / (dense[h, i] > 0).sum())
                assert float(expected[h, at, j]) == pytest.approx(max(distance, mean(same), equal), abs=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_the_weight_found_is_the_one_of_largest_divergence(causal: bool) -> None:
    trace = made_up(13, causal=causal, seed=4)
    dense = trace.attention[0].dense().double()
    (found,) = specific_weights(trace, [[12], [5, 6]], sinks=[2])
    assert {each.queries for each in found} == {(12,), (5, 6)}
    assert [each.divergence for each in found] == sorted((each.divergence for each in found), reverse=True)
    for each in found:
        queries = torch.tensor(each.queries)
        _, expected, _ = row_divergences(trace.attention[0], queries)
        best = {}
        for h in range(3):
            for j in set(range(13)) - {2, *each.queries}:
                terms = []
                for at, i in enumerate(each.queries):
                    weight = float(dense[h, i, j])
                    terms.append(weight * math.log(weight / float(expected[h, at, j])) if weight else 0.0)
                best[h, j] = sum(terms) / len(terms)
        h, j = max(best, key=lambda spot: best[spot])
        assert (each.head, each.key) == (h, j)
        assert each.divergence == pytest.approx(best[h, j], abs=1e-9)
        assert each.weight == pytest.approx(float(dense[h, queries, j].mean()), abs=1e-12)
        assert each.expected == pytest.approx(float(expected[h, :, j].mean()), abs=1e-12)


def test_a_head_that_looks_at_the_token_before_says_nothing_of_a_word() -> None:
    """Head 0 gives all to the token before, whatever it is; head 1 gives token 7 alone a fifth of token 3's."""
    length = 12
    query = torch.zeros(1, 2, length, length)
    query[0, 0] = 60 * torch.eye(length)[[0, *range(length - 1)]]
    query[0, 1, 3, 7] = 1.4
    key = torch.eye(length).expand(1, 2, length, length)
    weights = attend(query, key, key, scale=1.0).weights
    weights = AttentionMap(weights.query, weights.key, weights.rule, offset=weights.offset, ndim=3)
    plain = made_up(length)
    trace = Trace(plain.text, plain.tokens, None, None, None, None, plain.hidden_states, plain.last_hidden_state, None,
                  (weights,), (None,), STATUS)  # fmt: skip
    assert float(weights[0, 3, 2]) > 0.99
    assert 0.2 < float(weights[1, 3, 7]) < 0.3
    ((found,),) = specific_weights(trace, [[3]])
    assert (found.head, found.key) == (1, 7)
    assert specific_weights(trace, [[3]], head=0) == [[]]  # nothing beyond what it gives at that distance


def test_even_attention_has_nothing_to_say() -> None:
    trace = made_up(7, scale=0.0)
    assert specific_weights(trace) == [[]]
    assert most_specific_weight(specific_weights(trace)) is None
    assert specific_weights(made_up(1)) == [[]]


def test_the_bank_looks_at_the_river_and_it_at_the_cake(bank, minilm) -> None:
    found = [specific_weights(trace, [trace.word("bank")[0].tokens]) for trace in bank]
    assert [bank[n].tokens[found[n][0][0].key].text for n in (0, 1)] == ["river", "withdrawing"]
    trace = minilm.trace("I ate some of Bob's cake because it looked delicious.")
    layers = specific_weights(trace, [trace.word("it")[0].tokens], [sink.token for sink in sinks(trace)])
    assert trace.tokens[layers[3][0].key].text == "cake"


def test_of_many_queries_some_are_looked_at() -> None:
    length = SAMPLED + 100
    trace = made_up(length, heads=1)
    dense = trace.attention[0].dense().double()
    sample = [n * length // SAMPLED for n in range(SAMPLED)]
    query = next(n for n in range(length) if n not in sample)
    _, expected, _ = row_divergences(trace.attention[0], torch.tensor([query]))
    equal, of = float(1 / (dense[0, query] > 0).sum()), set()
    for key in range(0, length, 6):
        shift = key - query
        far = [float(dense[0, n, n + shift]) for n in sample if 0 <= n + shift < length]
        around = [n for n in range(query - 4, query + 5) if n != query and 0 <= n + shift < length]
        near = [float(dense[0, n, n + shift]) for n in around]
        baselines = [mean(far), mean(near), float(dense[0, sample, key].mean()), equal]
        assert float(expected[0, 0, key]) == pytest.approx(max(baselines), abs=1e-12)
        of.add(baselines.index(max(baselines)))
    assert of >= {1, 2}
    pairs = torch.tensor([[0, 0, 0], [query, 9, length - 1], [query - 4, 3, 0]])
    both = (divergences(weights, pairs) for weights in (trace.attention[0], dense.float()))
    torch.testing.assert_close(*both, rtol=1e-5, atol=1e-7)


def test_distinctive_pairs_have_the_head_of_the_word_s_link(bank: list[Trace]) -> None:
    for trace in bank:
        own = trace.word("bank")[0].tokens[0]
        apart = {sink.token for sink in sinks(trace)}
        pairs = distinctive_pairs(divergence_maps(trace.tokens, trace.attention, apart, range(6), range(12)))
        best = next(pair for pair in pairs if pair[0] == own)
        (link,) = word_links(trace, [[own]], apart)
        assert best[1:4] == (link.token, link.layer, link.head)
        assert best[4:6] == pytest.approx((link.weight, link.expected))
        assert [pair[-1] for pair in pairs] == sorted((max(pair[-1], DISTINCTIVE) for pair in pairs), reverse=True)
        assert len({pair[:2] for pair in pairs}) == len(pairs)
        assert not any(trace.tokens[n].special for pair in pairs for n in pair[:2])
        broken = [*list(trace.attention)[:5], attend(*torch.full((3, 12, len(trace.tokens), 2), math.nan)).weights]
        few, every = (
            distinctive_pairs(divergence_maps(trace.tokens, broken, apart, range(n), range(12))) for n in (5, 6)
        )
        assert few == every
        maps = [*divergence_maps(trace.tokens, broken, apart, [1], [3])]
        assert {pair[2:4] for pair in distinctive_pairs(maps)} <= {(1, 3)}
        largest, others = largest_divergences([divergence for _, _, divergence in maps])
        for query, key, *_, divergence in distinctive_pairs(maps):
            assert float(largest[0, 3, 0, query]) >= divergence
            assert float(largest[0, 3, 1, key]) >= divergence
            assert maps[0][2][3, query, others[0, 3, 0, query]] == largest[0, 3, 0, query]
            assert maps[0][2][3, others[0, 3, 1, key], key] == largest[0, 3, 1, key]


def test_masked_keys_with_very_large_scores_leave_the_divergences_of_a_long_text_exact() -> None:
    """Their exponentials are infinite, and count as nothing."""
    torch.manual_seed(0)
    query, key = 0.3 * torch.randn(2, 1, 1, 600, 16)
    query[..., 400, 5], key[..., 300, 5], query[..., :300, 6], key[..., 300, 6] = 8, 6, 10, 40
    weights = AttentionMap(query, key, ScoreRule(0.25, mask=Mask(high=0)), ndim=3)
    pairs = torch.tensor([[0], [400], [300]])
    for ours, exact in zip(divergences(weights, pairs), divergences(weights.dense(), pairs), strict=True):
        torch.testing.assert_close(ours, exact, rtol=1e-6, atol=0)
