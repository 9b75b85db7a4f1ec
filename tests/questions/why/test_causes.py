from dataclasses import replace

import pytest
import torch

import regard
from regard.explain.causes.ablation_effect import effect, removal
from regard.models.model import Model
from regard.questions.why.causes import occurrences_to_ask_why, only_occurrence, rank_causes
from regard.text.words import Word
from tests.support import RIVER, make_tiny
from tests.support.attention_outputs import make_model


def test_an_edge_that_is_cut_has_no_weight_and_the_others_share_it(minilm, bank) -> None:
    cut = minilm.trace(RIVER, interventions=[regard.ablate(regard.edge("bank", "river", layers=0))])
    before, after = bank[0].attention[0].dense(), cut.attention[0].dense()
    assert torch.all(after[:, 11, 10] == 0)
    torch.testing.assert_close(after[:, 11].sum(-1), torch.ones(12))
    kept = before[:, 11].clone()
    kept[:, 10] = 0
    torch.testing.assert_close(after[:, 11], kept / kept.sum(-1, keepdim=True), atol=1e-6, rtol=0)
    torch.testing.assert_close(after[:, :11], before[:, :11], atol=1e-6, rtol=0)
    assert "ablated: the edge from “bank” to “river” in layers 0" in cut.status.notes
    assert effect(bank[0], cut, "bank").moved > 1e-4
    assert effect(bank[0], cut, "bank").next_token is None
    assert cut.status.difference < 5e-6  # still the family's own attention, under the cut


def test_a_head_that_is_cut_gives_nothing(minilm, bank, tmp_path) -> None:
    model = make_tiny(tmp_path, minilm)
    opened = regard.load(tmp_path, device="cpu")
    cut = opened.trace("a river bank", interventions=[regard.ablate(regard.head(1, 2))])
    attention = model.encoder.layer[1].attention.output.dense
    with torch.no_grad():
        attention.weight[:, 16:24] = 0  # what head 2 of 3 is multiplied by
        inputs = minilm.tokenizer("a river bank", return_tensors="pt")
        expected = model(**inputs).last_hidden_state[0]
    torch.testing.assert_close(cut.last_hidden_state, expected, atol=1e-5, rtol=0)


def test_cuts_in_a_batch_are_each_texts_own(minilm) -> None:
    texts = [RIVER, "the river bank", "a bank by the river is a bank"]
    cuts = [regard.ablate(regard.edge("bank", "river"))]
    for batched, text in zip(minilm.trace(texts, interventions=cuts), texts, strict=True):
        single = minilm.trace(text, interventions=cuts)
        torch.testing.assert_close(batched.last_hidden_state, single.last_hidden_state, atol=1e-5, rtol=0)
        for word in single.word("bank"):
            for n in range(6):
                assert torch.all(single.attention[n][:, word.tokens[0], single.word("river")[0].tokens[0]] == 0)


@pytest.mark.parametrize(
    ("cut", "says"),
    [
        (regard.ablate(regard.head(6, 0)), "layer 6 is out of range, all-MiniLM-L6-v2 has layers 0 to 5"),
        (regard.ablate(regard.head(0, 12)), "head 12 is out of range, all-MiniLM-L6-v2 has heads 0 to 11"),
        (regard.ablate(regard.edge("bank", "money")), "word 'money' is not in the text"),
        (regard.ablate(regard.edge("bank", 14)), "token 14 is out of range, the text has tokens 0 to 13"),
        (regard.ablate(regard.edge("bank", "river", heads=[3, 12])), "head 12 is out of range"),
    ],
)
def test_cuts_that_do_not_exist(minilm, cut, says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        minilm.trace(RIVER, interventions=[cut])


def test_why_ranks_by_measured_effect(minilm, tmp_path) -> None:
    make_tiny(tmp_path, minilm)
    opened = regard.load(tmp_path, device="cpu")
    text = "a man on a river bank"
    trace = opened.trace(text)
    (word,) = trace.word("bank")
    found = regard.why(opened, trace, "bank")
    again = rank_causes(trace, word, lambda sets: opened.ablated(text, sets))
    assert found.to_json() == again.to_json() == regard.why(opened, trace, word).to_json()
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
    without = opened.trace(text, interventions=removal(trace, "river"))
    assert river.effect == pytest.approx(effect(trace, without, "bank").moved, abs=1e-9)
    assert all(-1 <= x <= 1 for x in (*found.tokens_agreement, *found.heads_agreement))


def test_tokens_are_ranked_by_what_is_asked_for(minilm, tmp_path) -> None:
    make_tiny(tmp_path, minilm)
    opened = regard.load(tmp_path, device="cpu")
    trace = opened.trace("a man on a river bank")
    removed = regard.why(opened, trace, "bank")
    assert removed.tokens_by == "removal"
    edges = regard.why(opened, trace, "bank", tokens_by="edges")
    river = next(cause for cause in edges.tokens if cause.name == "river")
    cut = opened.trace(trace.text, interventions=[regard.ablate(regard.edge("bank", river.token))])
    assert river.effect == pytest.approx(effect(trace, cut, "bank").moved, abs=1e-9)
    assert {c.name: c.effect for c in edges.tokens}["river"] != {c.name: c.effect for c in removed.tokens}["river"]
    for tokens_by in ("contribution", "weight"):
        found = regard.why(opened, trace, "bank", tokens_by=tokens_by)
        numbers = [getattr(cause, tokens_by) for cause in found.tokens]
        assert numbers == sorted(numbers, reverse=True)
        assert sorted(c.effect for c in found.tokens) == pytest.approx(sorted(c.effect for c in removed.tokens))
        assert (found.heads, found.tokens_agreement) == (removed.heads, pytest.approx(removed.tokens_agreement))


def test_a_word_that_occurs_twice_is_to_be_chosen(minilm) -> None:
    trace = minilm.trace("a bank by a bank")
    with pytest.raises(regard.RegardError, match=r"'bank' occurs 2 times: pass one of trace.word\('bank'\)"):
        regard.why(minilm, trace, "bank")
    with pytest.raises(regard.RegardError, match="the nearest are 'bank'"):
        regard.why(minilm, trace, "bonk")
    first, second = (regard.why(minilm, trace, each) for each in trace.word("bank"))
    assert first.tokens != second.tokens


def test_why_reads_the_tokens_of_the_trace(minilm) -> None:
    trace = minilm.trace(ids=minilm.tokenizer("a river bank")["input_ids"])
    last = Word("bank", 0, 1, (3,))
    of_ids, of_text = (regard.why(minilm, each, last) for each in (trace, minilm.trace("a river bank")))
    assert [(head.name, head.effect) for head in of_ids.heads] == [(head.name, head.effect) for head in of_text.heads]


def test_a_causal_model_says_what_changes_next(minilm, tmp_path) -> None:
    import transformers

    config = make_tiny(tmp_path, minilm, "llama").config
    transformers.LlamaForCausalLM(config).eval().save_pretrained(tmp_path)
    opened = regard.load(tmp_path, device="cpu")
    trace = opened.trace("a man on a river bank")
    nothing = effect(trace, opened.trace(trace.text), "bank")
    assert nothing.moved == pytest.approx(0, abs=1e-9)
    assert nothing.next_token == pytest.approx(0, abs=1e-9)
    assert nothing.after_place == pytest.approx(0, abs=1e-9)
    last = len(trace.tokens) - 1
    cut = opened.trace(trace.text, interventions=[regard.ablate(regard.edge(last, "river"))])
    of_last = effect(trace, cut, "bank")  # what the last token may look at changes nothing before it
    assert of_last.next_token > 1e-9
    assert of_last.after_place == pytest.approx(0, abs=1e-9)
    (bank,) = trace.word("bank")
    kept, changed = (each.logits[-1].double().softmax(-1) for each in (trace, cut))
    assert of_last.next_token == pytest.approx(float((kept * (kept / changed).log()).sum()), rel=1e-6)
    found = regard.why(opened, trace, bank)
    assert found.by == "divergence"
    for causes in (found.tokens, found.heads):
        measured = [cause.divergence for cause in causes]
        assert measured == sorted(measured, reverse=True)
        assert measured[0] > 0
    assert {cause.token for cause in found.tokens} == set(range(bank.tokens[-1] + 1))  # none that come later
    river = next(cause for cause in found.tokens if cause.name == "river")
    again = effect(trace, opened.trace(trace.text, interventions=removal(trace, river.token)), bank)
    assert (river.effect, river.divergence) == pytest.approx((again.moved, again.after_place), abs=1e-9)


def test_a_head_that_fills_gaps_says_nothing_of_what_comes_next(minilm, tmp_path) -> None:
    import transformers

    config = make_tiny(tmp_path, minilm).config
    transformers.BertForMaskedLM(config).eval().save_pretrained(tmp_path)
    opened = regard.load(tmp_path, device="cpu")
    trace = opened.trace("a river bank")
    assert trace.logits is not None
    found = effect(trace, opened.trace("a river bank", interventions=[regard.ablate(regard.head(0, 1))]), "bank")
    assert found.moved > 1e-9
    assert (found.next_token, found.after_place) == (None, None)


IDS = torch.randint(1, 101, (1, 9), generator=torch.Generator().manual_seed(7))


def test_why_of_an_encoder_decoders_words() -> None:
    opened = Model(make_model("marian"), None, name="marian")
    given = {"ids": IDS[0], "target_ids": IDS[0, :5].flip(0)}
    pair = opened.trace(**given)

    def retrace(cuts):
        return opened.trace(**given, interventions=cuts)

    at = Word("w", 0, 1, (2, 3))

    def ablated(sets):
        return opened.ablated(**given, sets=sets)

    target, source = (rank_causes(pair, at, ablated, part=part) for part in ("decoder", "encoder"))
    for found in (source, target):
        again = regard.why(opened, pair, at, part=found.part)
        assert (again.tokens, again.heads) == (found.tokens, found.heads)
    assert [sorted((c.part, c.token) for c in found.tokens) for found in (target, source)] == [
        [("cross", n) for n in range(9)] + [("decoder", n) for n in range(4)],
        [("encoder", n) for n in range(9)],
    ]
    assert len(target.heads) == 12
    assert len(source.heads) == 6
    assert (target.by, source.by) == ("effect", "effect")  # a bare model, without a language head
    cause = next(c for c in target.tokens if (c.part, c.token) == ("cross", 5))
    cut = retrace(removal(pair, 5, part="encoder"))
    assert cause.effect == pytest.approx(effect(pair.decoder, cut.decoder, at).moved, abs=1e-9)
    assert cause.effect > 0
    assert cause.weight == pytest.approx(
        float(torch.stack([w[:, [2, 3], 5] for w in pair.decoder.cross]).mean()), abs=1e-6
    )
    head = next(c for c in target.heads if c.name == "cross layer 1, head 2")
    cut = retrace([regard.ablate(regard.head(1, 2, part="cross"))])
    assert head.effect == pytest.approx(effect(pair.decoder, cut.decoder, at).moved, abs=1e-9)
    with pytest.raises(regard.RegardError, match="marian is an encoder-decoder: choose the text with the word: part="):
        rank_causes(pair, at, ablated)
    with pytest.raises(regard.RegardError, match="part 'decoder' is for encoder-decoders"):
        rank_causes(pair.encoder, at, ablated, part="decoder")
    with pytest.raises(regard.RegardError, match="part: got 'cross', expected one of 'encoder', 'decoder'"):
        rank_causes(pair, at, ablated, part="cross")
    with pytest.raises(regard.RegardError, match="part: got 'cross', expected one of 'encoder', 'decoder'"):
        only_occurrence(pair, "w", "cross")
    with pytest.raises(TypeError, match="side"):
        regard.why(opened, pair, at, side="target")


def test_occurrences_of_both_sides() -> None:
    opened = Model(make_model("marian"), None, name="marian")
    pair = opened.trace(ids=IDS[0], target_ids=IDS[0, :5])
    for each, text in ((pair.encoder, "bank of a bank"), (pair.decoder, "a bank")):
        each.text = text
        starts = [n for n, c in enumerate(text) if n == 0 or text[n - 1] == " "]
        spans = [(start, (text + " ").index(" ", start)) for start in starts]
        each.tokens = tuple(
            replace(token, text=text[a:b], start=a, end=b, special=False)
            for token, (a, b) in zip(each.tokens, spans, strict=False)
        )
    assert [(part, word.start) for part, word in occurrences_to_ask_why(pair, "bank")] == [
        ("decoder", 2),
        ("encoder", 0),
        ("encoder", 10),
    ]
    assert [part for part, _ in occurrences_to_ask_why(pair.encoder, "bank")] == [None, None]
    assert [part for part, _ in occurrences_to_ask_why(pair, "of")] == ["encoder"]
    with pytest.raises(regard.RegardError, match="text: word 'bunk' is not in .*; target: word 'bunk'"):
        occurrences_to_ask_why(pair, "bunk")


def test_a_cut_that_meets_no_attention_is_refused(minilm, monkeypatch) -> None:
    from regard.attention import ablation

    monkeypatch.setattr(ablation, "_applies", lambda *_: False)
    with pytest.raises(regard.RegardError, match="layer 3 of all-MiniLM-L6-v2 has no attention that could be ablated"):
        minilm.trace(RIVER, interventions=[regard.ablate(regard.head(3, 1))])
