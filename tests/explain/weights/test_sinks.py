"""Attention sinks: the criterion against dense weights, on planted sinks, on models with one and without."""

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import torch

import regard
from regard.attention import masks
from regard.display.terminal_parts import plain_lines_of_parts
from regard.explain.weights.sinks import EXCESS, FIRST, SEEN_BY, equal_shares, sinks, sinks_of
from regard.questions.map.whole import matrix, windowed
from regard.questions.see.answer import Seen, seen
from regard.text.tokens import encoded_ids
from regard.trace.layers import Layers
from tests.support import MONEY, RIVER
from tests.support.terminal import printed_parts

ANNA = "Anna kept the key. She opened the door with the key."


def planted(length: int, size: int, at: int | None, strength: float = 4.0, heads: int = 3, **rule):
    """A map (H, L, S) of nearly even scores but for one key, which every query scores higher by strength."""
    generator = torch.Generator().manual_seed(length + size)
    query, key = (torch.randn(1, heads, n, 7, generator=generator) * 0.3 for n in (length, size))
    query[..., 0] = 1
    if at is not None:
        key[:, :, at, 0] += strength
    weights = regard.attend(query, key, key, scale=1.0, **rule).weights
    offset = weights.offset if length == size else None
    return regard.AttentionMap(weights.query, weights.key, weights.rule, offset=offset, ndim=3)


def by_hand(maps, tokens, itself: bool) -> set[int]:
    """The criterion, read from dense weights and scores."""
    excess, seen_by = [], []
    for each in maps:
        dense, sees = each.dense().double(), each.scores[...] > -torch.inf
        even = sees / sees.sum(-1, keepdim=True).clamp(min=1)
        if itself:
            own = torch.eye(dense.shape[-1], dtype=torch.bool)
            dense, sees, even = (part.masked_fill(own, 0) for part in (dense, sees, even))
        others = sees.sum(1).clamp(min=1)
        share, equal = dense.sum(1) / others, even.sum(1) / others
        excess.append((share - equal) / (1 - equal))
        seen_by.append(sees.sum(1).amin(0))
    every, most = torch.cat(excess), torch.stack(seen_by).amax(0)
    causal = itself and all(float(each[:, 0, 1:].sum()) == 0 for each in maps)
    found = set()
    for n, token in enumerate(tokens):
        first = causal and n == 0
        least = FIRST if first else EXCESS
        enough = most[n] >= (1 if first else SEEN_BY)
        if not token.special and enough and float((every[:, n] >= least).double().mean()) > 0.5:
            found.add(n)
    return found


def text_of(count: int):
    return encoded_ids(range(count)).tokens


@pytest.mark.parametrize("causal", [False, True])
def test_a_planted_sink_is_found_and_nothing_else(causal: bool) -> None:
    maps = [planted(19, 19, 7, causal=causal) for _ in range(2)]
    (found,) = sinks_of(maps, text_of(19))
    assert (found.token, found.text, found.heads) == (7, "7", 1.0)
    dense = maps[0].dense().double()
    others = [n for n in range(8 if causal else 0, 19) if n != 7]
    assert found.share == pytest.approx(float(dense[:, others, 7].mean()), rel=1e-5)
    assert found.share > 0.5


def test_the_first_token_of_a_causal_model_needs_less() -> None:
    for length in (2, 3, 17, 90):
        assert [s.token for s in sinks_of([planted(length, length, 0, 3.0, causal=True)], text_of(length))] == [0]
    few = planted(30, 30, 0, 1.6, causal=True), planted(30, 30, 12, 1.6, causal=True)  # both above 0.1, below 0.2
    assert [[s.token for s in sinks_of([each], text_of(30))] for each in few] == [[0], []]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 19, 200])
@pytest.mark.parametrize("causal", [False, True])
def test_even_attention_has_no_sink(length: int, causal: bool) -> None:
    """Row 0 of a causal model gives its one token 1.0; that alone makes no sink."""
    assert sinks_of([planted(length, length, None, causal=causal)], text_of(length)) == []


def test_it_takes_most_heads() -> None:
    taken, even = planted(19, 19, 7), planted(19, 19, None)
    assert [s.token for s in sinks_of([taken, taken, even], text_of(19))] == [7]
    assert sinks_of([taken, even], text_of(19)) == []  # one half is not most


MASKS = {
    "all": {},
    "causal": {"causal": True},
    "window": {"window": (5, 2)},
    "causal window": {"causal": True, "window": (6, 0)},
    "function": {"mask": masks.function(lambda i, j: (i + j) % 3 > 0)},
    "dense": {"mask": torch.rand(1, 3, 23, 23, generator=torch.Generator().manual_seed(1)) < 0.7},
    "bias": {"bias": torch.zeros(1, 1, 23, 23).masked_fill(torch.ones(23, 23).triu(1).bool(), -3.4e38)},
    "learned sinks": {"sinks": torch.tensor([0.5, 2.0, -1.0])},
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("itself", [True, False])
def test_who_sees_a_key_is_counted_exactly(name: str, itself: bool) -> None:
    weights = planted(23, 23, None, **MASKS[name])
    sees = weights.scores[...] > -1e30
    even = (sees / sees.sum(-1, keepdim=True).clamp(min=1)).double()
    if itself:
        own = torch.eye(23, dtype=torch.bool)
        sees, even = sees.masked_fill(own, 0), even.masked_fill(own, 0)
    count, equal = equal_shares(weights, itself)
    assert torch.equal(count.expand(3, 23), sees.sum(1).double())
    torch.testing.assert_close(equal.expand(3, 23), even.sum(1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", MASKS)
def test_the_criterion_under_every_mask(name: str) -> None:
    for at in (0, 4, 11):
        maps = [planted(23, 23, at, 3.0, **MASKS[name])]
        if name != "bias":
            assert {sink.token for sink in sinks_of(maps, text_of(23))} == by_hand(maps, text_of(23), True)
        assert [sink.token for sink in sinks_of(maps, text_of(23))] == [at]


def test_the_source_of_cross_attention() -> None:
    maps = [planted(11, 17, 5)]
    assert (
        {sink.token for sink in sinks_of(maps, text_of(17), itself=False)} == by_hand(maps, text_of(17), False) == {5}
    )
    assert sinks_of(maps, text_of(17)) == []  # of one text it is no map


def test_ordinary_words_are_not_accused(minilm, bank) -> None:
    short = minilm.trace(["bank", "the bank", "a b c", "money money money", "Yes."])
    for trace in (*bank, *short):
        assert sinks(trace) == []
        assert by_hand(trace.attention, trace.tokens, True) == set()


@pytest.fixture
def sunk(bank):
    """The bank sentences' traces with their attention replaced: a token in the middle takes most of it."""
    return [replace(trace, attention=tuple(planted(14, 14, 3, heads=12) for _ in range(6))) for trace in bank[:1]]


def printed(found) -> str:
    return "\n".join(plain_lines_of_parts(found.shown(80, 1_000_000, everything=True), 80))


def valid(found) -> dict:
    schema = json.loads(files("regard.questions.see").joinpath("see.schema.json").read_text(encoding="utf-8"))
    data = json.loads(json.dumps(found.to_json()))
    jsonschema.validate(data, schema)
    return data


def test_a_sink_is_told_apart_wherever_weights_are_shown(sunk, tmp_path: Path) -> None:
    found = seen(sunk, "bank", layer=2)
    summary = found.summary
    row = summary.occurrences[0].attends[0]
    assert [(s.token, s.text) for s in row.sinks] == [(3, "poem")]
    assert "poem" not in [share.text for share in row.top]
    assert row.apart == pytest.approx(row.special + row.weights[3])
    out = printed(found)
    assert "poem (3, sink) 0." in out
    assert "“poem” (3) is an attention sink (mean weight received: 0." in " ".join(out.split())
    data = valid(found)
    assert [each["token"] for each in data["sinks"][0]] == [3]
    assert data["occurrences"][0]["attends"][0]["sinks"][0]["text"] == "poem"
    overview = seen(sunk)
    assert all("poem" not in cell.top[0].text for row in overview.attended(0, "text") for cell in row)
    assert "special tokens and sinks receive more than half" in " ".join(printed(overview).split())
    assert valid(overview)["overview"][0][5][0]["sinks"][0]["token"] == 3
    Seen(summary, 2, traces=sunk).draw(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_a_matrix_names_sinks_and_leaves_them_out_of_far_pairs(sunk) -> None:
    found = matrix(sunk[0], 2, top=4, far=2)
    assert (found.receivers[0].place.token, found.receivers[0].sink) == (3, True)
    assert all(3 not in (pair.query.token, pair.key.token) for pair in found.pairs)
    dense = sunk[0].attention[2].dense().double()
    for head in found.heads:
        assert head.sink_tokens == pytest.approx(float(dense[head.head, :, 3].mean()), rel=1e-5)
    told = " ".join(printed_parts(found.shown(100, everything=True), 100).split())
    assert "poem (sink)" in told
    assert "% to sink tokens" in told
    assert matrix(sunk[0], 2, 5).receivers[0].sink  # one head shown: all heads of the layer tell


def test_windows_have_sinks_of_their_own(minilm) -> None:
    read = minilm.trace(f"{RIVER} {MONEY} {RIVER}", window=12, stride=5, layers=[1])
    traces = [replace(t, attention=Layers("attention", 6, {1: planted(12, 12, 4, heads=12)})) for t in read.windows]
    found = windowed(read.plan, traces, 1, top=40, far=1)
    expected = {4 + read.plan.shift(n) for n in range(len(traces))}
    assert {each.place.token for each in found.receivers if each.sink} == expected
    assert found.heads[0].sink_tokens > 0.3


def test_stories260k_has_no_sink(stories) -> None:
    """Its first token is special, and gets no more than an equal share."""
    trace = stories.trace("Once upon a time, there was a little girl named Lily. She loved to play outside.")
    assert trace.tokens[0].special
    assert sinks(trace) == []
    assert by_hand(trace.attention, trace.tokens, True) == set()


def test_the_first_token_of_smollm2_is_one(smollm2) -> None:
    for text in (ANNA, RIVER, "the bank", "One two three"):
        trace = smollm2.trace(text)
        (found,) = sinks(trace)
        assert found.token == 0
        assert found.share > 0.5
        assert by_hand(trace.attention, trace.tokens, True) == {0}
    assert sinks(smollm2.trace("bank")) == []
    trace = smollm2.trace(ANNA)
    found = seen([trace], "key")
    summary = found.summary
    for occurrence in summary.occurrences:
        assert all(0 not in [share.token for share in row.top] for row in occurrence.attends)
    largest = max(row.sinks[0].weight for row in summary.occurrences[1].attends)
    assert largest > 0.8
    out = printed(found)
    assert f"first token (sink) {largest:.2f}" in out
    assert "Anna 0." not in out
    assert "It can attend only to itself." in " ".join(printed(seen([trace], "Anna")).split())
    valid(found)
