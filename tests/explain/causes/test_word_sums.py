"""Tokens joined to words: which belong together, and three ways to make one number of theirs."""

from typing import Any

import pytest
import torch

from regard.errors import RegardError
from regard.explain.causes.word_sums import joined, word_text, word_tokens
from regard.text.tokens import Token
from tests.support.own_models import no_checks_of_annotations

__all__ = ["no_checks_of_annotations"]  # the fixture

TEXT = "The riverbankers, they fish."
TOKENS = (
    Token(101, "[CLS]", 0, 0, None, True), Token(1, "the", 0, 3, 0, False), Token(2, "river", 4, 9, 1, False),
    Token(3, "##bank", 9, 13, 1, False), Token(4, "##ers", 13, 16, 1, False), Token(5, ",", 16, 17, 2, False),
    Token(6, "they", 18, 22, 3, False), Token(7, "fish", 23, 27, 4, False), Token(8, ".", 27, 28, 5, False),
    Token(102, "[SEP]", 28, 28, None, True),
)  # fmt: skip


def test_tokens_of_one_word_belong_together() -> None:
    groups = word_tokens(TOKENS)
    assert groups == [(0,), (1,), (2, 3, 4), (5,), (6,), (7,), (8,), (9,)]
    named = [word_text(TEXT, TOKENS, group) for group in groups]
    assert named == ["[CLS]", "The", "riverbankers", ",", "they", "fish", ".", "[SEP]"]
    two = (*TOKENS, Token(102, "[SEP]", 28, 28, None, True))
    assert word_tokens(two)[-2:] == [(9,), (10,)]  # special tokens are no word together


def test_the_models_tokens_are_each_in_one_word(minilm: Any) -> None:
    trace = minilm.trace("Riverbankers don't fish, they say.")
    groups = word_tokens(trace.tokens)
    assert [n for group in groups for n in group] == list(range(len(trace.tokens)))
    assert "Riverbankers" in [word_text(trace.text, trace.tokens, group) for group in groups]


def test_three_ways_to_join() -> None:
    scores = torch.tensor([1.0, 2.0, -5.0, 0.5], dtype=torch.float64)
    groups = [(0,), (1, 2, 3)]
    assert joined(scores, groups).tolist() == [1.0, -2.5]
    assert joined(scores, groups, "absmax").tolist() == [1.0, -5.0]
    assert joined(scores, groups, "mean").tolist() == pytest.approx([1.0, -2.5 / 3])


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_another_way_is_refused() -> None:
    with pytest.raises(RegardError, match="join: given 'most', needs one of 'sum', 'mean', 'absmax'"):
        joined(torch.ones(2), [(0, 1)], "most")  # type: ignore[arg-type]
