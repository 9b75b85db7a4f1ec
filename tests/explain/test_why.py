import math

import pytest
import torch

import regard
from regard.explain.effect import effect
from regard.explain.why import spearman, why
from regard.models import without
from tests.support import RIVER, make_tiny


def test_rank_correlation() -> None:
    assert spearman([1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 41.0]) == pytest.approx(1)
    assert spearman([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1)
    tied = spearman([1.0, 2.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0])
    assert tied == pytest.approx(0.9486832980505138)  # ties share their mean rank
    assert math.isnan(spearman([1.0, 1.0], [1.0, 2.0]))


def test_an_edge_that_is_cut_has_no_weight_and_the_others_share_it(minilm, bank) -> None:
    cut = minilm.trace(RIVER, without=[regard.edge("bank", "river", layers=0)])
    before, after = bank[0].attention[0].dense(), cut.attention[0].dense()
    assert torch.all(after[:, 11, 10] == 0)
    torch.testing.assert_close(after[:, 11].sum(-1), torch.ones(12))
    kept = before[:, 11].clone()
    kept[:, 10] = 0
    torch.testing.assert_close(after[:, 11], kept / kept.sum(-1, keepdim=True), atol=1e-6, rtol=0)
    torch.testing.assert_close(after[:, :11], before[:, :11], atol=1e-6, rtol=0)
    assert "cut: 'bank' may not look at 'river' in layers 0" in cut.status.notes
    assert effect(bank[0], cut, "bank").moved > 1e-4
    assert effect(bank[0], cut, "bank").next_token is None
    assert cut.status.difference < 5e-6  # still the family's own attention, under the cut


def test_a_head_that_is_cut_gives_nothing(minilm, bank, tmp_path) -> None:
    model = make_tiny(tmp_path, minilm)
    opened = regard.load(tmp_path, device="cpu")
    cut = opened.trace("a river bank", without=[regard.head(1, 2)])
    attention = model.encoder.layer[1].attention.output.dense
    with torch.no_grad():
        attention.weight[:, 16:24] = 0  # what head 2 of 3 is multiplied by
        inputs = minilm.tokenizer("a river bank", return_tensors="pt")
        expected = model(**inputs).last_hidden_state[0]
    torch.testing.assert_close(cut.contextual, expected, atol=1e-5, rtol=0)


def test_cuts_in_a_batch_are_each_texts_own(minilm) -> None:
    texts = [RIVER, "the river bank", "a bank by the river is a bank"]
    cuts = [regard.edge("bank", "river")]
    for batched, text in zip(minilm.trace(texts, without=cuts), texts, strict=True):
        single = minilm.trace(text, without=cuts)
        torch.testing.assert_close(batched.contextual, single.contextual, atol=1e-5, rtol=0)
        for word in single.word("bank"):
            for n in range(6):
                assert torch.all(single.attention[n][:, word.tokens[0], single.word("river")[0].tokens[0]] == 0)


@pytest.mark.parametrize(
    ("cut", "says"),
    [
        (regard.head(6, 0), "layer 6 is out of range, all-MiniLM-L6-v2 has layers 0 to 5"),
        (regard.head(0, 12), "head 12 is out of range, all-MiniLM-L6-v2 has heads 0 to 11"),
        (regard.edge("bank", "money"), "word 'money' is not in the text"),
        (regard.edge("bank", 14), "token 14 is out of range, the text has tokens 0 to 13"),
        (regard.edge("bank", "river", heads=[3, 12]), "head 12 is out of range"),
        ("head 3", "given str, needs regard.head"),
    ],
)
def test_cuts_that_do_not_exist(minilm, cut, says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        minilm.trace(RIVER, without=[cut])


def test_why_ranks_by_measured_effect(minilm, tmp_path) -> None:
    make_tiny(tmp_path, minilm)
    opened = regard.load(tmp_path, device="cpu")
    text = "a man on a river bank"
    trace = opened.trace(text)
    (word,) = trace.word("bank")
    found = why(trace, word, lambda cuts: opened.trace(text, without=cuts), without)
    assert len(found.tokens) == len(trace.tokens)
    assert len(found.heads) == 6
    for causes in (found.tokens, found.heads):
        effects = [cause.effect for cause in causes]
        assert effects == sorted(effects, reverse=True)
        assert effects[0] > 0
    river = next(cause for cause in found.tokens if cause.name == "river")
    assert river.weight == pytest.approx(
        float(torch.stack([w[:, word.tokens[0], river.token] for w in trace.attention]).mean()), abs=1e-6
    )
    cut = opened.trace(text, without=[regard.edge("bank", river.token)])
    assert river.effect == pytest.approx(effect(trace, cut, "bank").moved, abs=1e-9)
    assert all(-1 <= x <= 1 for x in (*found.tokens_agreement, *found.heads_agreement))


def test_a_causal_model_says_what_changes_next(minilm, tmp_path) -> None:
    import transformers

    config = make_tiny(tmp_path, minilm, "llama").config
    transformers.LlamaForCausalLM(config).eval().save_pretrained(tmp_path)
    opened = regard.load(tmp_path, device="cpu")
    trace = opened.trace("a man on a river bank")
    nothing = effect(trace, opened.trace(trace.text), "bank")
    assert nothing.moved == pytest.approx(0, abs=1e-9)
    assert nothing.next_token == pytest.approx(0, abs=1e-9)
    last = len(trace.tokens) - 1
    assert effect(trace, opened.trace(trace.text, without=[regard.edge(last, "river")]), "bank").next_token > 1e-9


def test_cuts_that_would_be_of_another_layer_are_refused(minilm, tmp_path) -> None:
    """ALBERT calls one module as every layer: a cut of layer 0 would be one of all layers."""
    make_tiny(tmp_path, minilm, "albert")
    opened = regard.load(tmp_path, device="cpu")
    with pytest.raises(regard.RegardError, match="calls one attention module several times"):
        opened.trace("a river bank", without=[regard.head(0, 1)])
    everywhere = opened.trace("a river bank", without=[regard.edge("bank", "river")])
    for weights in everywhere.attention:
        assert torch.all(weights[:, 3, 2] == 0)


def test_a_cut_that_meets_no_attention_is_refused(minilm, monkeypatch) -> None:
    from regard.attention import cuts

    monkeypatch.setattr(cuts, "_holds", lambda *_: False)
    with pytest.raises(regard.RegardError, match="layer 3 of all-MiniLM-L6-v2 has no attention that could be cut"):
        minilm.trace(RIVER, without=[regard.head(3, 1)])
