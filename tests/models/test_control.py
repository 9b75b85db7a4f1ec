"""Neutral sentences with the word of the texts, in their spelling, as many as the model can read."""

import pytest
import torch

from regard import RegardError
from regard.models.control import spellings, trace_control
from regard.text.neutral_sentences import SENTENCES, neutral_sentences
from tests.support.own_models import TARGETS, TEXTS, pair


def test_one_trace_a_sentence_with_states_and_no_logits(minilm, bank) -> None:
    control = trace_control(minilm, bank, "bank")
    assert [each.text for each in control] == neutral_sentences("bank")
    assert all(len(each.hidden_states) == 7 and each.logits is None for each in control)


def test_spellings_of_the_same_tokens_are_one(minilm) -> None:
    traces = minilm.trace(["A Bank and a bank.", "New York and new york.", "No such word."])
    assert spellings(traces, "bank") == ["Bank"]  # the default model knows no capitals
    assert spellings(traces, "new york") == ["New York"]
    assert spellings(traces, "river") == []
    assert trace_control(minilm, traces, "river") == []
    assert trace_control(minilm, traces[:1], "bank")[0].text == SENTENCES[0].replace("{}", "Bank")


def test_sentences_that_are_too_long(minilm, bank, monkeypatch) -> None:
    monkeypatch.setattr(minilm, "limit", 8)
    fits = trace_control(minilm, bank, "bank")
    assert 0 < len(fits) < len(SENTENCES)
    assert all(len(each.tokens) <= 8 for each in fits)
    with pytest.raises(
        RegardError, match="control: 'Nobody said a word about it and about the bank' is longer than the 8"
    ):
        trace_control(minilm, bank, "bank", ["Nobody said a word about it and about the {}"])


def test_a_model_that_reads_pairs_reads_them_by_its_encoder() -> None:
    model = pair()
    traces = [model.trace(TEXTS[0], target=TARGETS[0])]
    assert spellings(traces, "bank") == ["bank"]
    (control,) = trace_control(model, traces, "bank", ["I saw the {} ."])
    assert control.text == "I saw the bank ."
    encoder = model.trace("I saw the bank .", target="bank").encoder
    torch.testing.assert_close(control.last_hidden_state, encoder.last_hidden_state, atol=1e-6, rtol=0)
