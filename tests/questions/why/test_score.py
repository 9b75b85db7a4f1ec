"""One score, split: by closed-form numbers, against passes written out in float64, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest
import torch

import regard
from regard.capture.gradients.score_path import SideParts, Writer
from regard.errors import RegardError
from regard.models.model import Model
from regard.questions.why.score import ScoreSources, split_score
from tests.support import RIVER, by_hand
from tests.support.own_models import TEXTS, opened, pair

EMBEDDING, HEAD, LAYER = Writer("token"), Writer("attention", 0, 1, 2), Writer("feed-forward", 0)


def test_closed_form() -> None:
    """Three parts of a query and two of a key, given as they are: their products, sums, names and differences."""
    trace = opened("gpt").trace(TEXTS[0])
    own = trace.attention[0]
    scale = own.rule.scale
    q, k = own.query[0, 1, 4].double(), own.key[0, 1].double()
    a = torch.randn(2, q.shape[0], dtype=torch.float64)
    b = torch.randn(1, q.shape[0], dtype=torch.float64)
    query = SideParts((EMBEDDING, HEAD, LAYER), torch.cat([a, (q - a.sum(0))[None]]), q, (4,))
    key = SideParts((EMBEDDING, LAYER), torch.cat([b, (k[2] - b.sum(0))[None]]), k[2], (2,))
    others = SideParts((LAYER,), k[:5].mean(0)[None], k[:5].mean(0), (0, 1, 2, 3, 4))
    asked: list[Any] = []

    def split(*given: Any) -> tuple[SideParts, list[SideParts]]:
        asked.append(given)
        return query, [key, others]

    found = split_score(trace, 4, 2, 0, 1, split)
    call, head, rows, cols = asked[0]
    assert (call.layer, call.part, head, rows, cols) == (0, None, 1, [4], [[2], [0, 1, 2, 3, 4]])
    assert found.score == pytest.approx(scale * float(q @ k[2]))
    assert found.mean == pytest.approx(scale * float((k[:5] @ q).mean()))
    assert found.seen == 5
    assert found.weight == pytest.approx(float(trace.attention[0][1, 4, 2]))
    names, keys, scores = found.table()
    assert names == ["token embedding", "layer 0, head 1", "layer 0, feed-forward"]
    assert keys == ["token embedding", "layer 0, feed-forward"]
    torch.testing.assert_close(scores[0, 0], scale * a[0] @ b[0])
    torch.testing.assert_close(scores[1, 1], scale * a[1] @ (k[2] - b[0]))
    beside = found.beside_the_others()
    assert beside.score == pytest.approx(found.score - found.mean)
    torch.testing.assert_close(beside.table()[2][:, 0], scores[:, 0])  # the mean key has no such part
    torch.testing.assert_close(beside.table()[2][:, 1], scores[:, 1] - scale * query.vectors @ others.whole)
    assert beside.beside_the_others() is beside
    best = found.top(2)
    assert abs(best[0].score) == pytest.approx(float(scores.abs().max()))
    assert abs(best[0].score) >= abs(best[1].score)
    assert dict(found.side("key"))["token embedding"] == pytest.approx(float(scores[:, 0].sum()))
    assert found.table("token")[0][1] == f"layer 0, head 1 from “{trace.tokens[2].text.strip()}” (2)"
    assert sum(row["score"] for row in found.rows()) == pytest.approx(found.score)
    assert len(found.rows()) == 6

    wrong = replace(key, vectors=key.vectors * 1.001)
    with pytest.raises(RegardError, match="the parts' sum differs from the score by .* allowed is 1e-05"):
        split_score(trace, 4, 2, 0, 1, lambda *_: (query, [wrong, others]))
    other = replace(query, whole=2 * q)
    with pytest.raises(
        RegardError, match="the query that the model computes is 1.0e.00 of its length from the trace's"
    ):
        split_score(trace, 4, 2, 0, 1, lambda *_: (other, [key, others]))


def agrees(found: ScoreSources, parts: tuple[by_hand.Parts, by_hand.Parts], tokens: tuple[int, int]) -> None:
    """Every pair of writers against the pass written out in float64."""
    queries, keys, scores = found.table()
    assert set(queries) == set(parts[0])
    assert set(keys) == set(parts[1])
    query, key = (
        torch.stack([side[name][token] for name in names])
        for side, names, token in zip(parts, (queries, keys), tokens, strict=True)
    )
    expected = found.scale * query @ key.T
    assert float((scores - expected).abs().max()) < 1e-5 * float(expected.abs().sum())
    assert float((scores - expected).abs().max()) < 2e-4 * float(expected.abs().max())


@pytest.mark.parametrize(("layer", "head"), [(0, 2), (2, 7), (5, 1)])
def test_minilm_by_hand(minilm: Model, bank: Any, layer: int, head: int) -> None:
    trace = bank[0]
    query, key = trace.word("bank")[0].tokens[0], trace.word("river")[0].tokens[0]
    found = regard.score_sources(minilm, trace, "bank", "river", layer=layer, head=head)
    assert found.error < 1e-6
    assert found.score == pytest.approx(float(trace.attention[layer].scores[head, query, key]), abs=1e-4)
    ids = [token.id for token in trace.tokens]
    agrees(found, by_hand.bert(minilm.model, ids, layer, head), (query, key))
    for by in ("token", "source", "layer", "kind"):
        assert float(found.table(by)[2].sum()) == pytest.approx(found.score, abs=1e-4)


def test_the_head_that_looks_at_the_token_before_does_so_by_position(minilm: Model, bank: Any) -> None:
    found = regard.score_sources(minilm, bank[0], "bank", "river", layer=0, head=2).beside_the_others()
    best = found.top(1)[0]
    assert (best.query, best.key) == ("position embedding", "position embedding")
    assert best.score > 0.9 * found.score


@pytest.mark.parametrize(("layer", "head"), [(1, 2), (14, 5)])
def test_smollm2_by_hand(smollm2: Any, layer: int, head: int) -> None:
    trace = smollm2.trace(RIVER)
    query, key = trace.word("bank")[0].tokens[-1], trace.word("river")[0].tokens[-1]
    found = regard.score_sources(smollm2, trace, query, key, layer=layer, head=head)
    agrees(found, by_hand.llama(smollm2.model, [token.id for token in trace.tokens], layer, head), (query, key))


def test_stories_by_hand(stories: Any) -> None:
    trace = stories.trace("Once upon a time, there was a river.")
    ids = [token.id for token in trace.tokens]
    for layer, head, query, key in ((1, 3, 9, 4), (4, 0, 11, 11)):
        found = regard.score_sources(stories, trace, query, key, layer=layer, head=head)
        agrees(found, by_hand.llama(stories.model, ids, layer, head), (query, key))


def test_a_word_of_several_tokens_is_the_mean_of_their_scores() -> None:
    model = opened("bert")
    trace = model.trace(TEXTS[0])
    word = replace(trace.word("river")[0], tokens=(3, 6))
    found = regard.score_sources(model, trace, word, 2, layer=1, head=0)
    each = [regard.score_sources(model, trace, token, 2, layer=1, head=0) for token in (3, 6)]
    assert found.score == pytest.approx(sum(one.score for one in each) / 2, rel=1e-4)
    assert found.weight == pytest.approx(sum(one.weight for one in each) / 2)


def test_a_bias_and_a_softcap_are_told_apart_from_the_score() -> None:
    alibi = opened("alibi")
    trace = alibi.trace(TEXTS[0])
    found = regard.score_sources(alibi, trace, 5, 3, layer=1, head=0)
    assert found.bias == pytest.approx(float(trace.attention[1].scores[0, 5, 3]) - found.score, abs=1e-5)
    assert found.bias < 0  # ALiBi: the farther, the less
    assert found.softcapped is None


def test_an_encoder_decoder_needs_to_know_which_attention() -> None:
    model = pair()
    trace = model.trace(TEXTS[0], target="Un homme")
    found = regard.score_sources(model, trace, 2, 3, layer=1, head=0, part="cross")
    assert found.query_parts.tokens == (2,)
    assert {name.rpartition(" of the ")[2] for name in found.table("kind")[0]} == {"decoder"}
    assert any("cross head" in name for name in found.table()[0])
    for part in ("encoder", "decoder"):
        assert regard.score_sources(model, trace, 3, 1, layer=1, head=2, part=part).error < 1e-5
    with pytest.raises(RegardError, match="is an encoder-decoder: choose part='encoder'"):
        regard.score_sources(model, trace, 2, 3, layer=1, head=0)


def test_bad_input(minilm: Model, bank: Any) -> None:
    model = opened("gpt")
    trace = model.trace(TEXTS[0])
    with pytest.raises(RegardError, match="'fishing' can't attend to 'river' there: the score is masked"):
        regard.score_sources(model, trace, "fishing", "river", layer=0, head=0)
    with pytest.raises(RegardError, match="head 3 is out of range"):
        regard.score_sources(model, trace, "river", "fishing", layer=0, head=3)
    with pytest.raises(RegardError, match="layer 2 is out of range"):
        regard.score_sources(model, trace, "river", "fishing", layer=2, head=0)
    with pytest.raises(RegardError, match="is not an encoder-decoder: leave out part='cross'"):
        regard.score_sources(model, trace, "river", "fishing", layer=0, head=0, part="cross")
    cut = minilm.trace(RIVER, interventions=[regard.ablate(regard.head(0, 3))])
    with pytest.raises(RegardError, match="the trace has to be of this model, in its dtype, without interventions"):
        regard.score_sources(minilm, cut, "bank", "river", layer=1, head=0)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_is_no_trace() -> None:
    with pytest.raises(RegardError, match="got str, expected a trace"):
        regard.score_sources(opened("gpt"), "river", "river", "fishing", layer=0, head=0)  # type: ignore[arg-type]
