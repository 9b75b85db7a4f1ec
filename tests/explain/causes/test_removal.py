"""What is removed reaches nothing: the rest comes out as if other words had stood there."""

import pytest
import torch

import regard
from regard.explain.causes.removal import removal
from regard.models.model import Model
from tests.support import RIVER, make_tiny
from tests.support.attention_outputs import make_model


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
    with pytest.raises(regard.RegardError, match="removal: part: given None, marian needs 'encoder' or 'decoder'"):
        removal(pair, 0)
    with pytest.raises(regard.RegardError, match="removal: part: given 'cross', marian needs 'encoder' or 'decoder'"):
        removal(pair, 0, part="cross")
    with pytest.raises(regard.RegardError, match="removal: part: given 'encoder', all-MiniLM-L6-v2 needs none"):
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
