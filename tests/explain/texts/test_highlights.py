"""What is most worth a look is what a plain search over all weights and words finds."""

from dataclasses import replace

import pytest
import torch

from regard.explain.texts.highlights import highlights, words_of
from regard.explain.vectors.similarity import cosine
from regard.text.tokens import Token
from tests.support import in_text


def test_words() -> None:
    pieces = (("<s>", 0), ("un", 0), ("like", 2), ("-", 6), ("ly", 7), (" x", 9))
    tokens = in_text(
        [Token(0, text, at, at + len(text) * (n > 0), None, n == 0) for n, (text, at) in enumerate(pieces)]
    )
    assert words_of(tokens) == [[1, 2], [3], [4], [5]]
    assert words_of(tokens, {1}) == [[2], [3], [4], [5]]
    joined = in_text([replace(each, special=False) for each in (*tokens[1:3], replace(tokens[4], start=6, end=8))])
    assert words_of(joined) == [[0, 1, 2]]
    assert words_of(joined, {1}) == [[0, 2]]


@pytest.mark.parametrize("head", [None, 3])
def test_links_are_the_largest_weights(minilm, head) -> None:
    trace = minilm.trace("A man withdrawing unwatchable money from a river bank, again.")
    words = words_of(trace.tokens)
    place = {n: number for number, word in enumerate(words) for n in word}
    plain = [n for n, t in enumerate(trace.tokens) if t.text.replace("#", "").isalnum() and not t.special]
    inner = {n for n in plain if n in place}
    kept = sorted({place[n] for n in inner})
    rank = {word: n for n, word in enumerate(kept)}  # punctuation stands between no words
    expected = {}
    for layer, weights in enumerate(trace.attention):
        for h in range(weights.shape[0]) if head is None else [head]:
            dense = weights[h]
            best = max(
                ((float(dense[q, k]), q, k) for q in inner for k in inner if abs(rank[place[q]] - rank[place[k]]) > 1),
            )
            expected[layer, h] = best
    found = highlights(trace, head=head, top=5).links
    assert found[0].weight == max(expected.values())[0]
    assert [each.weight for each in found] == sorted((each.weight for each in found), reverse=True)
    for each in found:
        weight, query, key = expected[each.layer, each.head]
        assert (each.weight, each.query, each.key) == (weight, query, key)
    assert len({(each.query, each.key) for each in found}) == len(found)


def test_moved_words(minilm) -> None:
    trace = minilm.trace("The unwatchable film.")
    found = highlights(trace).moved
    assert sorted(each.word for each in found) == ["The", "film", "unwatchable"]
    assert [each.cosine for each in found] == sorted(each.cosine for each in found)
    one = next(each for each in found if each.word == "unwatchable")
    assert len(one.tokens) > 1
    rows = [state[one.tokens].mean(0) for state in (trace.hidden_states[0], trace.hidden_states[-1])]
    assert one.cosine == pytest.approx(cosine(*rows))
    aside = highlights(trace, sinks=one.tokens[:1]).moved  # a word is named whole where one of its tokens is a sink
    assert one.tokens[1:] in [each.tokens for each in aside if each.word == "unwatchable"]


def test_pieces_of_rows_are_the_whole(minilm, monkeypatch) -> None:
    trace = minilm.trace("A man withdrawing money from a river bank again and again.")
    whole = highlights(trace)
    monkeypatch.setattr("regard.explain.texts.highlights.PIECE", 3 * len(trace.tokens))
    assert highlights(trace) == whole
    assert torch.is_tensor(trace.last_hidden_state)
