"""What an ablation changed, against the formulas written out."""

import math
from dataclasses import replace

import pytest
import torch

import regard
from regard.explain.causes.ablation_effect import divergence, effect, effects, removal, spearman
from regard.models.model import Model
from tests.support import RIVER, make_tiny
from tests.support.attention_outputs import make_model
from tests.support.own_models import opened

TEXT = "A man is fishing on a river bank."


def test_divergence_is_the_formula_of_kullback_and_leibler() -> None:
    kept, changed = (torch.randn(17, generator=torch.Generator().manual_seed(n)) for n in (3, 5))
    p, q = kept.double().softmax(0), changed.double().softmax(0)
    assert divergence(kept, changed) == pytest.approx(float((p * (p / q).log()).sum()), abs=1e-12)
    assert divergence(kept, changed) != pytest.approx(divergence(changed, kept), abs=1e-3)
    assert 0 <= divergence(kept, kept + 7) < 1e-6  # a constant says nothing, and rounding gives nothing negative
    ruled_out = torch.tensor([0.5, -torch.inf, 1.0])
    assert divergence(ruled_out, torch.tensor([0.5, 3.0, 1.0])) > 0  # what was impossible adds nothing itself


def test_nothing_ablated_is_no_effect_and_a_head_is_one() -> None:
    model = opened("gpt")
    trace = model.trace(TEXT)
    none = effect(trace, model.trace(TEXT), "bank")
    assert (none.moved, none.next_token, none.after_place) == (0, 0, 0)
    ablated = model.trace(TEXT, interventions=[regard.ablate(regard.head(1, 2))])
    found, compare = effect(trace, ablated, "bank"), effects(trace, "bank")
    assert found == compare(ablated)  # what is computed once for all is the same
    (token,) = trace.word("bank")[0].tokens
    before, after = trace.last_hidden_state[token].double(), ablated.last_hidden_state[token].double()
    assert found.moved == pytest.approx(1 - float(torch.cosine_similarity(before, after, dim=0)), abs=1e-12)
    assert trace.logits is not None
    assert ablated.logits is not None
    assert found.after_place == divergence(trace.logits[token], ablated.logits[token])
    assert found.next_token == divergence(trace.logits[-1], ablated.logits[-1])
    assert found.moved > 0
    assert found.after_place != found.next_token


def test_a_model_that_fills_gaps_says_nothing_of_what_comes_next() -> None:
    model = opened("bert")
    trace = model.trace(TEXT)
    ablated = model.trace(TEXT, interventions=[regard.ablate(regard.head(0, 1))])
    assert effect(trace, ablated, "bank").next_token is None
    gpt = opened("gpt")
    whole = gpt.trace(TEXT)
    assert effect(whole, replace(whole, logits=None), "bank").after_place is None


def test_no_token_may_look_at_what_is_removed(minilm, bank) -> None:
    without = minilm.trace(RIVER, interventions=removal(bank[0], "river"))
    (river,) = bank[0].word("river")
    kept = [n for n in range(len(bank[0].tokens)) if n not in river.tokens]
    for before, after in zip(bank[0].attention, without.attention, strict=True):
        assert torch.all(after.dense()[:, :, list(river.tokens)] == 0)
        torch.testing.assert_close(after.dense()[:, kept].sum(-1), torch.ones(12, len(kept)))
        assert float(before.dense()[:, kept][:, :, list(river.tokens)].sum()) > 0
    assert without.status.notes[-1] == "ablated: the edge from “every token” to “river” in all layers"


def test_what_stood_there_no_longer_matters(minilm) -> None:
    """Two texts that differ in one word are the same without it, in every other token."""
    river, money = (minilm.trace(f"The old {word} bank was quiet.") for word in ("river", "money"))
    (place,) = river.word("river")[0].tokens
    ends = [minilm.trace(each.text, interventions=removal(each, place)).last_hidden_state for each in (river, money)]
    others = [n for n in range(len(river.tokens)) if n != place]
    torch.testing.assert_close(ends[0][others], ends[1][others], atol=1e-5, rtol=0)
    assert float((ends[0][place] - ends[1][place]).norm()) > 0.1  # its own residual stream is its own
    edges = [
        minilm.trace(each.text, interventions=[regard.ablate(regard.edge("bank", place))])["bank"]
        for each in (river, money)
    ]
    assert float((edges[0] - edges[1]).norm()) > 1e-3  # by its own edges alone, other words still tell


def test_of_an_encoder_decoder(bank) -> None:
    opened = Model(make_model("marian"), None, name="marian")
    ids = torch.randint(1, 101, (9,), generator=torch.Generator().manual_seed(7)).tolist()
    pair = opened.trace(ids=ids, target_ids=ids[:5])
    other = [ids[0] + 1, *ids[1:]]
    ends = []
    for given in (ids, other):
        trace = opened.trace(ids=given, target_ids=ids[:5], interventions=removal(pair, 0, part="encoder"))
        assert all(torch.all(each.dense()[:, :, 0] == 0) for each in (*trace.encoder.attention, *trace.decoder.cross))
        ends.append(trace.decoder.last_hidden_state)
    torch.testing.assert_close(ends[0], ends[1], atol=1e-5, rtol=0)
    changed = opened.trace(ids=other, target_ids=ids[:5]).decoder.last_hidden_state
    assert float((pair.decoder.last_hidden_state - changed).norm()) > 1e-4
    target = opened.trace(ids=ids, target_ids=ids[:5], interventions=removal(pair, 1, part="decoder"))
    assert all(torch.all(each.dense()[:, 2:, 1] == 0) for each in target.decoder.attention)
    with pytest.raises(regard.RegardError, match="removal: part: got None, but marian needs 'encoder' or 'decoder'"):
        removal(pair, 0)
    with pytest.raises(regard.RegardError, match="removal: part: got 'cross', but marian needs 'encoder' or 'decoder'"):
        removal(pair, 0, part="cross")
    with pytest.raises(regard.RegardError, match="removal: part: got 'encoder', but all-MiniLM-L6-v2 needs none"):
        removal(bank[0], "river", part="encoder")


def test_the_first_token_of_a_causal_model(minilm, tmp_path) -> None:
    """It may then look at nothing at all, which is no division by zero."""
    import transformers

    config = make_tiny(tmp_path, minilm, "llama").config
    transformers.LlamaForCausalLM(config).eval().save_pretrained(tmp_path)
    opened = regard.load(tmp_path, device="cpu")
    trace = opened.trace("a man on a river bank")
    without = opened.trace(trace.text, interventions=removal(trace, 0))
    assert torch.isfinite(without.last_hidden_state).all()
    assert all(torch.all(each.dense()[:, :, 0] == 0) for each in without.attention)


def test_rank_correlation() -> None:
    assert spearman([1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 41.0]) == pytest.approx(1)
    assert spearman([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1)
    tied = spearman([1.0, 2.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0])
    assert tied == pytest.approx(0.9486832980505138)  # ties share their mean rank
    assert math.isnan(spearman([1.0, 1.0], [1.0, 2.0]))
