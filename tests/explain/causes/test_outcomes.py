"""Outcomes: one number of a trace each, and what is no token of a vocabulary."""

import pytest
import torch

import regard
from regard.explain.causes.outcomes import Outcome, chosen_outcome, cosine, logit, logit_difference, probability
from tests.support import own_models


def test_of_the_next_token() -> None:
    model = own_models.opened("gpt")
    trace = model.trace("A man is")
    man, bank = (model.tokenizer.convert_tokens_to_ids(word) for word in ("man", "bank"))
    assert logit_difference(model, "man", "bank").of(trace) == float(trace.logits[-1, man] - trace.logits[-1, bank])
    assert logit_difference(model, "man", "bank", at="man").of(trace) == float(
        trace.logits[1, man] - trace.logits[1, bank]
    )
    assert logit(model, "man").of(trace) == logit(model, man).of(trace) == float(trace.logits[-1, man])
    share = probability(model, "bank")
    assert share.of(trace) == pytest.approx(float(trace.logits[-1].softmax(-1)[bank]), abs=1e-7)
    assert share.name == "probability of “bank”"
    assert logit_difference(model, "man", "bank", at=1).name == "logit difference “man” − “bank” at token 1"


def test_of_an_embedding(minilm, bank) -> None:
    river, money = bank
    found = cosine("bank", river["bank"], "the river's")
    assert found.of(river) == pytest.approx(1.0, abs=1e-9)
    expected = torch.nn.functional.cosine_similarity(river["bank"].double(), money["bank"].double(), 0)
    assert found.of(money) == pytest.approx(float(expected), abs=1e-9)
    assert found.name == "cosine of “bank” and the river's"
    with pytest.raises(regard.RegardError, match="got a vector of 3 components, but embeddings have 384"):
        cosine("bank", torch.ones(3)).of(river)
    with pytest.raises(regard.RegardError, match="has no language head: pass a cosine"):
        probability(minilm, "bank").of(river)
    assert Outcome("length", lambda trace: float(len(trace.tokens))).of(river) == len(river.tokens)


def test_what_is_no_token(minilm) -> None:
    with pytest.raises(
        regard.RegardError, match="'riverbankers' isn't a single token of the vocabulary.*'river', '##bank'"
    ):
        logit(minilm, "riverbankers")
    with pytest.raises(regard.RegardError, match="got 'a', expected a token id, because the model has no tokenizer"):
        logit(regard.load(own_models.opened("gpt").model), "a")
    model = own_models.opened("gpt")
    with pytest.raises(regard.RegardError, match="token id 999 is out of range: there are ids 0 to"):
        logit(model, 999).of(model.trace("A man is"))


def test_what_chooses_no_outcome(minilm, bank) -> None:
    with pytest.raises(regard.RegardError, match=r"outcome: pass to \(a next token or label\) or word"):
        chosen_outcome(minilm, bank[0], logit, to=None, against=None, word=None)
