"""opus-mt-en-fr, a translator with an encoder and a decoder."""

import pytest
import torch
from transformers.modeling_outputs import BaseModelOutput

from tests.support import MONEY, RIVER

FRENCH = (
    "Écris un poème sur un homme qui pêche sur la rive d'un fleuve.",
    "Écris un poème sur un homme qui retire de l'argent d'une banque.",
)


@pytest.fixture(scope="module")
def pairs(opus_mt):
    return opus_mt.trace([RIVER, MONEY], target=list(FRENCH))


def eager(opus_mt, pair):
    """The same weights with Marian's own attention, on one pair alone, from the ids that the trace read."""
    model = opus_mt.model
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    ids, target = (torch.tensor([[token.id for token in side.tokens]]) for side in (pair.encoder, pair.decoder))
    try:
        with torch.no_grad():
            return model(input_ids=ids, decoder_input_ids=target, output_attentions=True)
    finally:
        model.set_attn_implementation(before)


@pytest.mark.parametrize("number", [0, 1])
def test_all_three_kinds_of_attention_are_those_of_eager(opus_mt, pairs, number: int) -> None:
    pair, theirs = pairs[number], eager(opus_mt, pairs[number])
    kinds = (
        (pair.encoder.attention, theirs.encoder_attentions),
        (pair.decoder.attention, theirs.decoder_attentions),
        (pair.decoder.cross, theirs.cross_attentions),
    )
    for ours, expected in kinds:
        assert len(ours) == len(expected) == 6
        for weights, dense in zip(ours, expected, strict=True):
            assert weights.shape == dense[0].shape
            torch.testing.assert_close(weights.dense(), dense[0], atol=1e-5, rtol=0)
    # a batch of two, one of them padded, against one alone
    torch.testing.assert_close(pair.decoder.logits, theirs.logits[0], atol=1e-3, rtol=0)
    torch.testing.assert_close(pair.encoder.last_hidden_state, theirs.encoder_last_hidden_state[0], atol=1e-4, rtol=0)


def test_the_status_says_what_was_compared(pairs) -> None:
    status = pairs[0].status
    assert status.difference < 5e-6
    assert status.rows_compared > 0
    assert status.embedding_difference < 1e-5
    assert any("character positions" in note for note in status.notes)  # of a tokenizer that tells none


@pytest.mark.parametrize(("number", "word"), [(0, "rive"), (1, "banque")])
def test_the_translated_word_looks_at_bank(pairs, number: int, word: str) -> None:
    pair = pairs[number]
    (bank,), (translated,) = pair.encoder.word("bank"), pair.decoder.word(word)
    shares = pair.decoder.cross[2][:, list(translated.tokens)].mean((0, 1))  # of layer 2, heads averaged
    assert int(shares.argmax()) == bank.tokens[0]
    assert 0.3 < float(shares[list(bank.tokens)].sum()) < 0.5


def test_bank_is_one_vector_before_and_two_after(pairs) -> None:
    places = [pair.encoder.word("bank")[0].tokens[0] for pair in pairs]
    before = [pair.encoder.token_embeddings[n] for pair, n in zip(pairs, places, strict=True)]
    after = [pair.encoder.last_hidden_state[n] for pair, n in zip(pairs, places, strict=True)]
    assert torch.equal(*before)
    assert float(torch.cosine_similarity(*after, dim=0)) < 0.95


def test_it_translates_and_is_traced_while_it_does(opus_mt) -> None:
    written = opus_mt.generate(MONEY, max_new_tokens=40)
    assert written.text == "Écris un poème sur un homme qui retire de l'argent d'une banque."
    pair = written.trace
    theirs = eager(opus_mt, pair)
    for weights, dense in zip(pair.decoder.cross, theirs.cross_attentions, strict=True):
        torch.testing.assert_close(weights.dense(), dense[0], atol=1e-5, rtol=0)
    for weights, dense in zip(pair.decoder.attention, theirs.decoder_attentions, strict=True):
        torch.testing.assert_close(weights.dense(), dense[0], atol=1e-5, rtol=0)


def test_the_encoder_alone_says_the_same(opus_mt, pairs) -> None:
    pair = pairs[1]
    ids = torch.tensor([[token.id for token in pair.decoder.tokens]])
    with torch.no_grad():
        again = opus_mt.model(
            encoder_outputs=BaseModelOutput(pair.encoder.last_hidden_state[None]), decoder_input_ids=ids
        )
    torch.testing.assert_close(again.logits[0], pair.decoder.logits, atol=1e-3, rtol=0)


def test_the_word_that_becomes_another_comes_first(opus_mt) -> None:
    from regard.explain.texts.summary import summarise
    from regard.questions.see.alignment import alignment_sentences
    from tests.said.reading import names_in, numbers_in

    summary = summarise([opus_mt.generate(text).trace for text in (RIVER, MONEY)])
    said = alignment_sentences(summary)
    assert names_in(said[0]) == ["bank", "rive", "banque"]
    assert [number for number in numbers_in(said[0]) if "." in number] == ["0.54", "0.78"]
