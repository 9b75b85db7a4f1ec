"""Scores of heads: against their definitions on attention made by hand, and on real models."""

import math
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
import torch

import regard
from regard.attention.attention_map import AttentionMap
from regard.attention.scores import ScoreRule
from regard.explain.weights import head_scores as module
from regard.explain.weights.head_scores import NAMES, head_scores
from regard.explain.weights.sinks import sinks
from regard.text.tokens import encoded_ids
from regard.trace.layers import Layers
from regard.trace.trace import Trace
from tests.support import RIVER
from tests.support.attention_outputs import make_model, traced

IDS = (7, 3, 5, 3, 5, 9, 3)  # 3 and 5 come again; behind an earlier 3 stands 5, behind an earlier 5 stand 3 and 9

HYBRID = torch.tensor([[7, 11, 13, 7, 11, 17]])


def looking(*weights: Any, sinks: torch.Tensor | None = None) -> AttentionMap:
    """The map (H, L, L) whose weights these are: queries are unit vectors, keys the logarithms."""
    dense = torch.stack([torch.as_tensor(each, dtype=torch.float64) for each in weights])
    heads, length, _ = dense.shape
    query = torch.eye(length, dtype=torch.float64).expand(1, heads, length, length)
    key = dense.clamp_min(1e-300).log().mT[None]
    rule = ScoreRule(scale=1.0, sinks=sinks)
    return AttentionMap(query, key, rule, offset=0, ndim=3)


def trace_of(*maps: AttentionMap, ids: Any = IDS, special: Any = ()) -> Trace:
    tokens = encoded_ids(ids).tokens
    tokens = tuple(replace(token, special=n in special) for n, token in enumerate(tokens))
    status: Any = mock.Mock(model="by hand")
    states = torch.zeros(len(ids), 2)
    made = object.__new__(Trace)
    vectors = {"hidden_states": (states,), "last_hidden_state": states, "values": (None,) * len(maps)}
    for name, value in {"text": "", "tokens": tokens, "status": status, "attention": maps, **vectors}.items():
        setattr(made, name, value)
    return made


def to(*keys: int) -> torch.Tensor:
    """Attention (L, L) of which each query puts all on one key."""
    return torch.nn.functional.one_hot(torch.tensor(keys), len(keys)).double()


def test_heads_that_follow_one_thing_each() -> None:
    previous, following, same = to(0, 0, 1, 2, 3, 4, 5), to(1, 2, 3, 4, 5, 6, 6), to(0, 1, 2, 3, 4, 5, 6)
    first = to(*[0] * 7)
    duplicate = to(0, 0, 0, 1, 2, 0, 3)
    induction = to(0, 0, 0, 2, 3, 0, 4)
    half = (duplicate + first) / 2
    given = [looking(previous, following, same), looking(first, duplicate, induction), looking(half, half, half)]
    found = head_scores(trace_of(*given))
    assert found.calls == ((0, 0), (1, 0), (2, 0))
    assert found.layers == (0, 1, 2)
    assert (found.queries, found.duplicates, found.inductions) == (6, 3, 3)
    # of the first two layers: which part of the queries that count look where the score looks
    expected = {
        "previous": [[1, 0, 0], [1 / 6, 1 / 6, 3 / 6], [1 / 6, 1 / 6, 1 / 6]],
        "same": [[0, 1 / 6, 1], [0, 0, 0], [0, 0, 0]],
        "next": [[0, 1, 0], [0, 0, 0], [0, 0, 0]],
        "special": [[0, 0, 0]] * 3,
        "first": [[1 / 6, 0, 0], [1, 3 / 6, 3 / 6], [9 / 12, 9 / 12, 9 / 12]],
        "duplicate": [[0, 0, 0], [0, 1, 0], [1 / 2, 1 / 2, 1 / 2]],
        "induction": [[2 / 3, 0, 0], [0, 0, 1], [0, 0, 0]],
    }
    for name, rows in expected.items():
        assert getattr(found, name).tolist() == [pytest.approx(row, abs=1e-12) for row in rows], name
    assert list(found.by_name()) == list(NAMES)
    assert set(NAMES) == {*expected, "sinks"}


def plainly(trace: Trace) -> dict[str, list[list[float]]]:
    """The definitions, number by number."""
    ids, tokens = [token.id for token in trace.tokens], trace.tokens
    length = len(tokens)
    queries = [i for i in range(1, length) if not tokens[i].special]
    apart = [sink.token for sink in sinks(trace)]
    keys = {
        "previous": {i: [i - 1] for i in queries},
        "next": {i: [i + 1] for i in queries if i + 1 < length},
        "same": {i: [i] for i in queries},
        "special": {i: [j for j in range(length) if tokens[j].special] for i in queries},
        "first": {i: [0] for i in queries},
        "sinks": dict.fromkeys(queries, apart),
        "duplicate": {i: [j for j in range(i) if ids[j] == ids[i]] for i in queries},
        "induction": {i: [j for j in range(1, i) if ids[j - 1] == ids[i]] for i in queries},
    }
    found: dict[str, list[list[float]]] = {name: [] for name in keys}
    for weights in trace.attention:
        dense = weights.dense().double()
        for name, of in keys.items():
            of = {i: js for i, js in of.items() if js} if name in ("duplicate", "induction") else of
            rows = [[float(sum(head[i, j] for j in js)) for i, js in of.items()] for head in dense]
            found[name].append([math.nan if not row else sum(row) / len(row) for row in rows])
    return found


@pytest.mark.parametrize("block", [1, 97, 1 << 22])
def test_any_size_of_block_gives_what_the_definitions_say(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(module, "BLOCK", block)
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(0, 5, (17,), generator=generator).tolist()
    maps = [looking(*torch.rand(3, 17, 17, generator=generator).softmax(-1)) for _ in range(2)]
    trace = trace_of(*maps, ids=ids, special={0, 16})
    found, expected = head_scores(trace), plainly(trace)
    for name in NAMES:
        assert getattr(found, name).tolist() == [pytest.approx(row, abs=1e-6) for row in expected[name]], name


def test_special_tokens_ask_nothing_but_are_looked_at() -> None:
    around = to(0, 0, 6, 6, 0, 0, 6)
    found = head_scores(trace_of(looking(around), special={0, 6}))
    assert found.queries == 5
    assert float(found.special) == pytest.approx(1)
    assert float(found.first) == pytest.approx(3 / 5)
    assert float(found.sinks) == 0
    assert found.sink_tokens == ()  # special tokens are none


def test_a_sink_and_a_learned_sink() -> None:
    causal = torch.zeros(19, 19)
    causal[:, 0] = 1
    trace = trace_of(looking(causal, causal), ids=range(19))
    found = head_scores(trace)
    assert found.sink_tokens == (0,)
    assert found.sinks.tolist() == [pytest.approx([1, 1])]
    even = torch.full((7, 7), 1 / 7)
    learned = head_scores(trace_of(looking(even, even, sinks=torch.tensor([0.0, math.log(3)]).double())))
    assert learned.sink_tokens == ()
    assert learned.sinks.tolist() == [pytest.approx([1 / 2, 3 / 4])]  # a sink of score s takes e^s / (e^s + 1)
    assert learned.same.tolist() == [pytest.approx([1 / 14, 1 / 28])]


def test_what_a_text_does_not_have_is_nan() -> None:
    even = torch.full((5, 5), 1 / 5)
    found = head_scores(trace_of(looking(even), ids=range(5)))
    assert (found.duplicates, found.inductions) == (0, 0)
    assert math.isnan(float(found.duplicate))
    assert math.isnan(float(found.induction))
    alone = head_scores(trace_of(looking(torch.ones(1, 1)), ids=[3]))
    assert alone.queries == 0
    assert all(math.isnan(float(each)) for each in alone.by_name().values())


def test_layers_keep_their_numbers_and_layers_of_fewer_heads_are_filled() -> None:
    two, three = looking(to(*range(7)), to(*range(7))), looking(*[to(0, 0, 1, 2, 3, 4, 5)] * 3)
    trace = trace_of()
    trace.attention = Layers("attention", 5, {(1, 0): two, (3, 0): three, (3, 1): two}, made=[(1, 0), (3, 0)])
    found = head_scores(trace)
    assert found.calls == ((1, 0), (3, 0), (3, 1))
    assert found.same[0].tolist()[:2] == pytest.approx([1, 1])
    assert math.isnan(found.same[0, 2])
    assert found.previous[1].tolist() == pytest.approx([1, 1, 1])


def test_what_has_no_scores_is_refused() -> None:
    trace = trace_of()
    trace.attention = Layers("attention", 2, {})
    with pytest.raises(regard.RegardError, match="has no attention"):
        head_scores(trace)
    query = torch.zeros(1, 2, 7, 3)
    wider = AttentionMap(query, torch.zeros(1, 2, 11, 3), ScoreRule(scale=1.0), ndim=3)
    with pytest.raises(regard.RegardError, match="layer 0 has keys that aren't tokens of the text"):
        head_scores(trace_of(wider))


def test_families_against_the_definitions() -> None:
    ids = torch.tensor([[7, 11, 13, 7, 11, 7, 19, 7]])
    for kind in ("bert", "llama"):
        trace = traced(make_model(kind), ids)
        found, expected = head_scores(trace), plainly(trace)
        for name in NAMES:
            assert getattr(found, name).tolist() == [pytest.approx(row, abs=1e-6) for row in expected[name]], name


def test_a_hybrid_has_rows_for_the_layers_with_attention() -> None:
    types = ["conv", "full_attention", "conv", "full_attention"]
    trace = traced(make_model("lfm2", num_hidden_layers=4, layer_types=types, num_key_value_heads=2), HYBRID)
    found = head_scores(trace)
    assert found.layers == (1, 3)
    dense = trace.attention[3].dense().double()
    torch.testing.assert_close(found.same[1], dense.diagonal(dim1=1, dim2=2)[:, 1:].mean(1), atol=1e-6, rtol=0)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_the_sides_of_an_encoder_decoder(pair_of_marian: Any) -> None:
    with pytest.raises(regard.RegardError, match=r"pass its trace's .encoder or .decoder"):
        head_scores(pair_of_marian)
    for side, count in ((pair_of_marian.encoder, 9), (pair_of_marian.decoder, 5)):
        found = head_scores(side)
        assert found.same.shape == (2, 3)
        assert found.queries == count - 1
    assert float(head_scores(pair_of_marian.decoder).next.abs().max()) == 0  # it does not see what comes


@pytest.fixture(scope="module")
def pair_of_marian() -> Any:
    ids = torch.randint(1, 101, (9,), generator=torch.Generator().manual_seed(8))
    return regard.load(make_model("marian")).trace(ids=ids, target_ids=ids[:5])


def test_minilm(bank: Any) -> None:
    trace = bank[0]
    assert trace.text == RIVER
    found, expected = head_scores(trace), plainly(trace)
    for name in NAMES:
        shown = getattr(found, name)
        assert shown.shape == (6, 12)
        assert shown.tolist() == [pytest.approx(row, abs=1e-6, nan_ok=True) for row in expected[name]], name
    assert found.duplicates == 2  # "a" comes three times
    assert float(found.previous[0, 2]) == pytest.approx(0.9995, abs=1e-4)  # one head does nothing else


def test_a_model_that_writes(stories: Any) -> None:
    trace = stories.trace("Once upon a time there was a dog. The dog was a good dog.")
    found, expected = head_scores(trace), plainly(trace)
    for name in NAMES:
        assert getattr(found, name).tolist() == [pytest.approx(row, abs=1e-6) for row in expected[name]], name
    assert float(found.next.max()) == 0
    ids = [token.id for token in trace.tokens][1:]
    again = head_scores(stories.trace(ids=ids + ids))
    assert again.inductions >= len(ids) - 1
