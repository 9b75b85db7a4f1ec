"""From which layer on a token is the likeliest: all ranks are looked at."""

from dataclasses import replace

from regard.explain.logits.logit_lens import Layer, LogitLens
from regard.explain.logits.predictions import Candidate
from regard.questions.lens.answer import Lens
from regard.questions.lens.sentences import of_lens
from regard.text.tokens import Token
from tests.support.summaries import bare_summary

TOKENS = [Token(0, "the", 0, 3, None, False), Token(1, "bank", 4, 8, None, False)]


def said(*ranks: int, after: bool = True, texts: int = 1) -> str:
    layers = [Layer(n, [Candidate(7, "of", 0.5)], rank, 0.5) for n, rank in enumerate(ranks)]
    one = LogitLens(0, 1, "bank", after, None, Candidate(7, " of", 0.31), layers, 0.0)
    summary = replace(
        bare_summary("bank", [], None, [], 0), logit_lenses=[one], tokens=[TOKENS], texts=["the bank"] * texts,
        labels=["1", "2"],
    )  # fmt: skip
    (sentence,) = of_lens(Lens(summary))
    return sentence


def test_from_where_on_it_is_the_likeliest() -> None:
    says = "After “bank” the model would say “of” (0.31)"
    assert said(1, 1, 1) == f"{says}, and so would every state."
    assert said(1216, 1, 1) == f"{says}: the likeliest from layer 0 on, and of rank 1,216 as it enters layer 0."
    assert said(1, 5, 1) == f"{says}: the likeliest from layer 1 on, and of rank 5 after layer 0."
    assert said(9, 1, 2) == f"{says}, though it is of rank 2 after layer 1."


def test_masked_models_and_several_texts() -> None:
    assert said(1, after=False, texts=2).startswith("In the place of “bank” in text 1 the model would say")
