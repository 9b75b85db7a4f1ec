"""What is most worth a look is what a plain search over all weights and words finds."""

import math
from dataclasses import replace

import pytest
import torch

from regard.explain.texts.highlights import MIN_WEIGHT, Link, highlights, numbers_of_links, unusual_links, words_of
from regard.explain.vectors.similarity import cosine
from regard.explain.weights.specific_weights import DISTINCTIVE, row_divergences
from regard.text.tokens import Token
from regard.text.words import is_content_word
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
def test_links_are_the_most_distinctive_of_all_weights(minilm, head) -> None:
    """Compare with a plain search over every head and pair: links to content words first, by token."""
    trace = minilm.trace("A man withdrawing unwatchable money from a river bank, again.")
    words = [word for word in words_of(trace.tokens) if trace.tokens[word[0]].text[0].isalnum()]
    place = {n: number for number, word in enumerate(words) for n in word}
    spelled = {n: trace.text[trace.tokens[w[0]].start : trace.tokens[w[-1]].end].lower() for w in words for n in w}
    every = {}
    for layer, weights in enumerate(trace.attention):
        dense = weights.dense().double()
        _, _, nats = row_divergences(weights, torch.arange(len(dense[0])))
        for h in range(weights.shape[0]) if head is None else [head]:
            for q, k in ((q, k) for q in place for k in place if abs(place[q] - place[k]) > 1):
                if spelled[q] != spelled[k] and nats[h, q, k] > every.get((q, place[k]), (0.0,))[0]:
                    every[q, place[k]] = float(nats[h, q, k]), layer, h, q, k, float(dense[h, q, k])
    of_token: dict[int, list[tuple]] = {}
    for link in sorted(every.values(), reverse=True):
        nats, _, _, q, k, weight = link
        strong = weight >= MIN_WEIGHT and nats >= DISTINCTIVE
        if is_content_word(spelled[q]) and is_content_word(spelled[k]) and strong:
            of_token.setdefault(q, []).append(link)
    first = sorted((links[:2] for links in of_token.values()), key=lambda links: -sum(link[0] for link in links))
    wanted = [link for links in first for link in links]
    found = highlights(trace, head=head, top=5).links
    assert [(x.layer, x.head, x.query, x.key) for x in found[: len(wanted)]] == [link[1:5] for link in wanted[:5]]
    for link, (nats, *_, weight) in zip(found, wanted, strict=False):
        assert link.divergence == pytest.approx(nats)
        assert link.weight == pytest.approx(weight)
        assert link.divergence == pytest.approx(link.weight * math.log(link.weight / link.expected))


def test_unusual_links_are_those_of_each_token_s_own_row(minilm, monkeypatch) -> None:
    trace = minilm.trace("The animal didn't cross the street because it was too tired.")
    links = unusual_links(trace, [])
    it = next(n for n, token in enumerate(trace.tokens) if token.text == "it")
    assert {link.key_text for link in links[it]} >= {"tired", "animal"}
    for query, row in links.items():
        assert [link.query for link in row] == [query] * len(row)
        assert [link.divergence for link in row] == sorted((link.divergence for link in row), reverse=True)
        for link in row:
            assert link.weight == pytest.approx(float(trace.attention[link.layer][link.head, query, link.key]))
            assert link.divergence == pytest.approx(link.weight * math.log(link.weight / link.expected))
            assert (link.query_text, link.key_text) == (trace.tokens[query].text, trace.tokens[link.key].text)
    monkeypatch.setattr("regard.explain.texts.highlights.MAX_WEIGHTS", 100)
    assert unusual_links(trace, []) == {}


def test_function_words_come_last(minilm) -> None:
    trace = minilm.trace("The animal didn't cross the street because it was too tired.")
    links = [(link.query_text, link.key_text) for link in highlights(trace, top=30).links]
    assert links[:2] == [("it", "tired"), ("it", "animal")]  # not the larger weight of "too" on "because"
    assert links.index(("too", "because")) > links.index(("it", "animal"))
    assert [is_content_word(each.word) for each in highlights(trace).moved] == [True, True, True, True, False]


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


def test_a_sentence_numbers_repeated_tokens_and_counts_the_tokens_to_a_far_one() -> None:
    words = [["a", "cat", "saw", "the", "cat"], [f"w{n}" for n in range(60)]]
    short, longer = ([Token(n, word, 0, 0, n, False) for n, word in enumerate(text)] for text in words)
    first, second, other, far = (
        Link(2, 1, q, "", k, "", 0.5, 0.1, 1.0) for q, k in ((2, 4), (2, 0), (0, 2), (40, 10))
    )  # fmt: skip
    head = "(0.50, layer 2, head 1)"
    assert numbers_of_links(short, [first, second]) == {
        "subject": "“saw”", "links": [f"“cat” (4) {head}", f"“a” {head}"],
    }  # fmt: skip
    assert len(numbers_of_links(short, [first, other])["links"]) == 1
    assert numbers_of_links(longer, [far])["links"] == [f"“w10”, 30 tokens earlier {head}"]
