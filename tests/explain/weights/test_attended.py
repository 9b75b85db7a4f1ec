"""One row of attention as a person reads it."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import RegardError
from regard.explain.weights.attended import (
    Share,
    attended,
    check_head,
    check_heads,
    check_layer,
    held_attention_calls,
    keys_of_other_words,
    maps_between_tokens,
    other_words,
)
from regard.text.tokens import Token
from tests.support import in_text
from tests.support.own_models import TEXTS, opened, pair

WORDS = ["[CLS]", "a", "river", ",", "ba", "##nk", "on", "money", "."]
PLACES = [0, 0, 2, 7, 9, 11, 14, 17, 22]  # "a river, bank on money."
TOKENS = in_text(
    [
        Token(0, text, at, at + len(text.replace("##", "").replace("[CLS]", "")), None, text == "[CLS]")
        for text, at in zip(WORDS, PLACES, strict=True)
    ]
)
OWN = [4, 5]


def test_special_tokens_and_sinks_stand_apart() -> None:
    texts = ["[CLS]", "a", "man", "fishing", "[SEP]"]
    tokens = [Token(n, text, 0, 1, None, n in (0, 4)) for n, text in enumerate(texts)]
    weights = torch.tensor([0.25, 0.125, 0.0, 0.5, 0.125])
    (found,) = attended(weights[None], tokens, 2, None, 5, sinks=[1])
    assert (found.layer, found.head, found.special) == (2, None, 0.375)
    assert found.sinks == [Share(1, "a", 0.125)]
    assert found.top == [Share(3, "fishing", 0.5)]  # what gets nothing is not named
    assert found.apart == 0.5
    assert found.weights == weights.tolist()
    (first,) = attended(weights[None], tokens, 2, 1, 1, whole=False)
    assert len(first.top) == 1
    assert first.weights is None


@given(st.integers(1, 13), st.integers(0, 7), st.sampled_from([torch.float32, torch.float64]), st.data())
def test_rows_at_once_are_each_as_a_sort_of_all_has_it(size: int, top: int, dtype: torch.dtype, data: Any) -> None:
    parts = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.3])  # with ties, of which the first is named first
    rows = torch.tensor(data.draw(st.lists(st.lists(parts, min_size=size, max_size=size), min_size=1)), dtype=dtype)
    tokens = [Token(n, f"t{n}", n, n + 1, n, data.draw(st.booleans())) for n in range(size)]
    sinks = data.draw(st.sets(st.integers(0, size - 1)))
    for row, found in zip(rows.tolist(), attended(rows, tokens, 1, 2, top, sinks), strict=True):
        ranked = sorted(range(size), key=lambda n: -row[n])
        named = [n for n in ranked if row[n] > 0 and not tokens[n].special and n not in sinks]
        assert [(each.token, each.weight) for each in found.top] == [(n, row[n]) for n in named[:top]]
        assert [(each.token, each.weight) for each in found.sinks] == [(n, row[n]) for n in sorted(sinks) if row[n] > 0]
        assert found.special == pytest.approx(sum(row[n] for n in range(size) if tokens[n].special))


def test_layers_and_heads_count_from_the_end_too(bank) -> None:
    trace = bank[0]
    assert check_heads(trace, -1, -12) == (5, 0)
    assert check_heads(trace, None, None) == (None, None)
    with pytest.raises(RegardError, match="layer 6 is out of range: all-MiniLM-L6-v2 has layers 0 to 5"):
        check_layer(trace, 6)
    with pytest.raises(RegardError, match="head 12 is out of range"):
        check_head(trace, 12)


def test_maps_between_the_tokens_of_one_text() -> None:
    trace = opened("gpt").trace(TEXTS[0])
    assert held_attention_calls(trace) == ((0, 0), (1, 0))
    assert [each.shape for each in maps_between_tokens(trace)] == [(3, len(trace.tokens), len(trace.tokens))] * 2
    shorter = opened("gpt").trace(TEXTS[0])
    shorter.tokens = shorter.tokens[:-1]
    with pytest.raises(
        RegardError, match="^layer 0 has keys that aren't tokens of the text, so its heads have no scores$"
    ):
        maps_between_tokens(shorter)
    trace.attention = ()
    with pytest.raises(RegardError, match="has no attention"):
        held_attention_calls(trace)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_maps_of_a_pair_are_asked_of_one_side() -> None:
    with pytest.raises(RegardError, match="is an encoder-decoder: pass its trace's .encoder or .decoder"):
        held_attention_calls(pair().trace(TEXTS[0], target="Un homme"))  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="is an encoder-decoder: pass its trace's .encoder or .decoder"):
        maps_between_tokens(pair().trace(TEXTS[0], target="Un homme"))  # type: ignore[arg-type]


def test_other_words_are_not_special_nor_marks_nor_sinks_nor_the_word() -> None:
    assert other_words(TOKENS, OWN) == [1, 2, 6, 7]
    assert other_words(TOKENS, OWN, sinks=[1]) == [2, 6, 7]


def test_pieces_of_its_word_and_the_same_word_again_are_not_different() -> None:
    """The rest of a word of which one piece is followed is no other word; one that is said twice is the same."""
    pieces = [("rifle", 0), ("##d", 5), ("hearts", 7), ("it", 14), ("'", 16), ("s", 17), ("Hearts", 19), ("all", 26)]
    tokens = in_text([Token(0, text, at, at + len(text.removeprefix("##")), None, False) for text, at in pieces])
    keys = [row.nonzero()[:, 0].tolist() for row in keys_of_other_words(tokens, [[2], [1], [3]])]
    assert keys == [[0, 1, 3, 5, 7], [2, 3, 5, 6, 7], [0, 1, 2, 6, 7]]  # "it's" is one word
    assert keys_of_other_words(tokens, [[2]], sinks=[7])[0].nonzero()[:, 0].tolist() == [0, 1, 3, 5]


def test_what_a_vocabulary_does_not_know_is_no_word() -> None:
    tokens = in_text([Token(0, text, 2 * n, 2 * n + 1, None, False) for n, text in enumerate(("a", "b", "[UNK]", "d"))])
    assert other_words(tokens, [0]) == [1, 3]
