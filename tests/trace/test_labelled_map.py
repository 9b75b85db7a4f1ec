"""Maps that are asked by words: the same numbers as by rows and columns, and what is not one word is refused."""

import gc
import pickle
import re
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.attention.attention_map import AttentionMap
from regard.errors import RegardError
from regard.trace.labelled_map import LabelledMap, attention_from, special_share, vector
from regard.trace.layers import Layers
from regard.trace.trace import PairTrace

TWICE = "The bank of the river is far from the bank with withdrawals."


@pytest.fixture(scope="module")
def trace(minilm: Any) -> Any:
    return minilm.trace("two withdrawals from a river bank")


@pytest.fixture(scope="module")
def twice(minilm: Any) -> Any:
    return minilm.trace(TWICE)


@pytest.fixture(scope="module")
def pair(tiny_pair: Any) -> Any:
    return tiny_pair.trace("a river bank", target="la banque sur la rive")


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, atol=1e-7, rtol=1e-6)


def test_words_are_rows_and_columns(trace: Any) -> None:
    weights = trace.attention[3]
    dense, (many,), (bank,) = weights.dense(), trace.word("withdrawals"), trace.word("bank")
    rows, columns = list(many.tokens), list(bank.tokens)
    assert len(rows) == 2
    same(weights["withdrawals", "bank"], dense[:, rows][:, :, columns].sum(2).mean(1))
    same(weights["bank", "withdrawals"], dense[:, columns][:, :, rows].sum(2).mean(1))
    same(weights["withdrawals", "withdrawals"], dense[:, rows][:, :, rows].sum(2).mean(1))
    same(weights["withdrawals"], attention_from(weights, many))
    same(weights["withdrawals", :], attention_from(weights, many))
    same(weights[:, "withdrawals"], weights[:, :, list(many.tokens)].sum(2))
    same(weights[many, bank], weights["withdrawals", "bank"])
    same(weights["withdrawals", 0], dense[:, rows, 0].mean(1))
    same(weights["withdrawals", np.int64(-1)], dense[:, rows, -1].mean(1))
    same(weights[4, "withdrawals"], dense[:, 4][:, rows].sum(1))
    same(weights["withdrawals", 2:5], dense[:, rows, 2:5].mean(1))
    same(weights["withdrawals", [5, 1]], dense[:, rows][:, :, [5, 1]].mean(1))
    same(weights[1:3, "withdrawals"], dense[:, 1:3][:, :, rows].sum(2))


def test_of_some_heads(trace: Any) -> None:
    weights = trace.attention[0]
    every = weights["withdrawals", "river"]
    same(weights[2, "withdrawals", "river"], every[2])
    same(weights[-1, "withdrawals", "river"], every[-1])
    same(weights[[5, 2], "withdrawals", "river"], every[[5, 2]])
    same(weights[3:6, "withdrawals", "river"], every[3:6])
    same(weights[2, "withdrawals", :], weights["withdrawals"][2])
    same(weights[2, :, "withdrawals"], weights[:, "withdrawals"][2])
    same(weights[2, 3, "withdrawals"], weights[3, "withdrawals"][2])
    same(weights[2, "withdrawals", 3], weights["withdrawals", 3][2])


def test_all_else_is_the_maps_own(trace: Any) -> None:
    weights = trace.attention[2]
    plain = AttentionMap(weights.query, weights.key, weights.rule, offset=weights.offset, ndim=3)
    assert isinstance(weights, AttentionMap)
    assert isinstance(weights, LabelledMap)
    for index in (3, (2, 5), (slice(1, 4), 2, [1, 2]), ..., (0, ..., 1), None, torch.tensor([1, 4])):
        assert torch.equal(weights[index], plain[index])
        assert torch.equal(weights.scores[index], plain.scores[index])
    assert torch.equal(weights.dense(), plain.dense())
    assert torch.equal(weights.top(3)[1], plain.top(3)[1])
    for name in ("entropy", "received", "distance"):
        assert torch.equal(getattr(weights, name)(), getattr(plain, name)())
    assert torch.equal(weights.pooled(3, 4), plain.pooled(3, 4))
    assert torch.equal(weights.statistics().keys, plain.statistics().keys)
    assert (weights.shape, len(weights)) == (plain.shape, 12)
    assert repr(weights) == repr(plain).replace("Attention", "Labelled")
    with pytest.raises(IndexError, match="out of bounds for axis 1"):
        weights[0, 99]


def test_a_word_that_occurs_twice_is_refused_with_what_to_give(twice: Any) -> None:
    weights, (first, second) = twice.attention[1], twice.word("bank")
    says = re.escape(
        "word 'bank' occurs 2 times (at characters 4, 38): pass ('bank', 0) for 'The bank of the rive…', "
        "('bank', 1) for '…ar from the bank with withdr…', or one of trace.word('bank')"
    )
    for look in (
        lambda: weights["bank", "river"],
        lambda: weights["river", "bank"],
        lambda: weights["bank"],
        lambda: twice["bank"],
    ):
        with pytest.raises(RegardError, match=says):
            look()
    same(weights[("bank", 1), "river"], weights[second, "river"])
    same(weights["river", ("bank", 0)], weights["river", first])
    same(weights[("bank", -1), :], weights[second])
    assert not torch.equal(weights[first, "river"], weights[second, "river"])
    same(twice["bank", 1], vector(twice.last_hidden_state, second))
    same(twice[first], twice["bank", 0])
    many = minilm_like(twice, "a bank " * 6)
    with pytest.raises(RegardError, match=r"for '[^']*', and 2 more, or one of"):
        many["bank"]


def minilm_like(trace: Any, text: str) -> Any:
    """The same trace, as if it were of another text with as many tokens."""
    words = [n for n in range(len(text)) if text.startswith("bank", n)]
    tokens = list(trace.tokens)
    for n, start in enumerate(words):
        tokens[n + 1] = replace(tokens[n + 1], start=start, end=start + 4)
    return replace(trace, text=text, tokens=tuple(tokens))


def test_what_is_no_word_of_the_text_is_refused(trace: Any, twice: Any) -> None:
    weights = trace.attention[0]
    with pytest.raises(RegardError, match="word 'rivet' is not in the text .*nearest are 'river'"):
        weights["bank", "rivet"]
    with pytest.raises(RegardError, match=r"word 'bank', occurrence 1: it occurs once: use 0"):
        weights[("bank", 1), "river"]
    with pytest.raises(RegardError, match=r"word 'bank', occurrence 2: it occurs 2 times: use 0 to 1"):
        twice["bank", 2]
    with pytest.raises(RegardError, match="word 'bank' at character 38 is from a different text than 'two withdrawals"):
        weights[twice.word("bank")[1], "river"]
    needs = r"an index with a word needs \(queries, keys\) or \(heads, queries, keys\)"
    for index in (("bank", "river", 3), (0, 1, "bank", 2), (..., "bank"), ("bank", None)):
        with pytest.raises(RegardError, match=needs):
            weights[index]
    with pytest.raises(IndexError, match="index 99 is out of bounds for axis 2"):
        weights["bank", 99]
    for number in (9, -10):
        with pytest.raises(IndexError, match=f"token {number} is out of range: the text has tokens 0 to 8") as caught:
            trace[number]
        assert isinstance(caught.value, RegardError)


def test_the_vector_of_a_word(trace: Any) -> None:
    same(trace["withdrawals"], trace.last_hidden_state[[2, 3]].mean(0))
    same(trace[-1], trace.last_hidden_state[-1])
    with pytest.raises(TypeError, match="not iterable"):
        list(trace)


def test_cross_attention_asks_by_a_target_word_for_a_source_word(pair: Any) -> None:
    weights = pair.decoder.cross[2]
    (rive,), (bank,) = pair.decoder.word("rive"), pair.encoder.word("bank")
    same(weights["rive", "bank"], weights.dense()[:, rive.tokens[0], bank.tokens[0]])
    same(weights["rive"], attention_from(weights, rive))
    same(weights[:, "bank"], weights[:, :, list(bank.tokens)].sum(2))
    with pytest.raises(RegardError, match="word 'rive' is not in the text 'a river bank'"):
        weights["rive", "rive"]
    with pytest.raises(RegardError, match="word 'la' occurs 2 times"):
        weights["la", "bank"]
    (banque,), own = pair.decoder.word("banque"), pair.decoder.attention[1]
    same(own["rive", "banque"], own.dense()[:, rive.tokens[0], banque.tokens[0]])
    again = replace(pair, decoder=replace(pair.decoder, text=pair.decoder.text))
    same(again.decoder.cross[2]["rive", "bank"], weights["rive", "bank"])
    alone = replace(
        pair.decoder,
        cross=tuple(AttentionMap(m.query, m.key, m.rule, offset=m.offset, ndim=3) for m in pair.decoder.cross),
    )
    with pytest.raises(RegardError, match="the keys of this map have no words, such as 'bank': use numbers"):
        alone.cross[2]["rive", "bank"]


def test_a_trace_that_was_saved(pair: Any, trace: Any, tmp_path: Path) -> None:
    regard.save([trace, pair], tmp_path / "a.safetensors", layers=[1])
    opened, both = regard.open(tmp_path / "a.safetensors")
    assert isinstance(opened.attention, Layers)
    same(opened.attention[1]["withdrawals", "river"], trace.attention[1]["withdrawals", "river"])
    same(opened["bank"], trace["bank"])
    assert isinstance(both, PairTrace)
    same(both.decoder.cross[1]["rive", "bank"], pair.decoder.cross[1]["rive", "bank"])
    with pytest.raises(RegardError, match=r"attention\[0\] was not saved"):
        opened.attention[0]["bank"]
    again = pickle.loads(pickle.dumps(trace.attention[1]))
    same(again["bank", "river"], trace.attention[1]["bank", "river"])


def test_some_layers_and_windows(minilm: Any) -> None:
    text = "a man on a river bank"
    few = minilm.trace(text, layers=[4])
    same(few.attention[4]["river", "bank"], minilm.trace(text).attention[4]["river", "bank"])
    windows = minilm.trace("a man on a river and a bank near it", window=8)
    inside, word = windows.locate(windows.word("river")[0])
    same(inside.attention[2]["river"], attention_from(inside.attention[2], word))


def test_words_follow_the_text_that_a_trace_is_given(trace: Any) -> None:
    other = replace(trace, text=trace.text.replace("river", "RIVER"))
    same(other.attention[0]["bank", "RIVER"], trace.attention[0]["bank", "river"])
    other.text = other.text.replace("bank", "BANK")
    same(other.attention[0]["BANK", "RIVER"], trace.attention[0]["bank", "river"])
    assert trace.attention[0]._rows is other.attention[0]._rows  # nothing is computed again


def test_a_map_in_another_dtype_keeps_its_words_and_a_cropped_one_has_none(trace: Any) -> None:
    weights = trace.attention[0]
    same(weights.to(torch.float64)["bank", "river"].float(), weights["bank", "river"])
    with pytest.raises(RegardError, match="the queries of this map have no words"):
        weights.crop(0, slice(1, 5), slice(0, 8))["bank", 2]
    shorter = replace(trace, tokens=trace.tokens[:-1])
    with pytest.raises(RegardError, match="the queries of this map have no words"):
        shorter.attention[0]["bank", 2]


def test_a_map_outlives_its_trace_and_holds_it_not(minilm: Any) -> None:
    trace = minilm.trace("a river bank")
    weights, gone = trace.attention[0], weakref.ref(trace)
    del trace
    assert gone() is None or (gc.collect() and gone() is None)
    assert weights["bank", "river"].shape == (12,)


def test_a_word_of_several_tokens(minilm) -> None:
    trace = minilm.trace("two withdrawals there")
    (word,) = trace.word("withdrawals")
    assert word.tokens == (2, 3)
    dense = trace.attention[1].dense()
    torch.testing.assert_close(vector(trace.last_hidden_state, word), trace.last_hidden_state[2:4].mean(0))
    torch.testing.assert_close(attention_from(trace.attention[1], word), dense[:, 2:4].mean(1))
    torch.testing.assert_close(trace.attention[1][:, :, list(word.tokens)].sum(2), dense[:, :, 2] + dense[:, :, 3])


def test_the_share_of_special_tokens(bank) -> None:
    trace = bank[0]
    row = trace.attention[0][:, 11]
    torch.testing.assert_close(special_share(row, trace.tokens), row[:, 0] + row[:, 13])
