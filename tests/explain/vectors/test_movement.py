"""Planes of vectors, and of a word's movement what is on one and what is not."""

import pytest
import torch

from regard.explain.vectors.movement import movement
from regard.explain.vectors.neutral import Control, Neutral
from regard.explain.vectors.similarity import cosine
from regard.text.tokens import Token
from regard.text.words import Word
from regard.trace.status import Status
from regard.trace.trace import Trace

STATUS = Status("made up", (), "cpu", "float32", None, 0, None)


def made_up(states: list[torch.Tensor], name: str = "word") -> Trace:
    """A trace of these states (L, M), one token a row."""
    tokens = tuple(Token(n, f"{name}{n}", n, n + 1, n, False) for n in range(len(states[0])))
    text = name if len(tokens) == 1 else "x" * len(tokens)
    return Trace(text, tokens, None, None, None, None, tuple(states), states[-1], None, (), (), STATUS)


def word(trace: Trace, token: int) -> tuple[Trace, Word]:
    return trace, Word(trace.tokens[token].text, token, token + 1, (token,))


def test_massive_activations_are_left_out_and_named() -> None:
    generator = torch.Generator().manual_seed(3)
    states = [torch.randn(7, 24, generator=generator) for _ in range(4)]
    text = made_up(states)
    before = movement([word(text, 4)], [text], [])
    assert (before.left_out, before.states) == ([], [0, 1, 2, 3])
    longer = [state.clone() for state in states]
    longer[1][0] *= 400 / longer[1][0].norm()  # in one layer alone
    text = made_up(longer)
    median = float(longer[1].norm(dim=1).median())
    moved = movement([word(text, 0), word(text, 4)], [text], [], ["1a", "1b"])
    (left,) = moved.left_out
    assert (left.kind, left.name, left.of) == ("word", "word0", "1a")
    assert left.times == pytest.approx(400 / median, rel=1e-5)
    assert moved.words[0] is None
    assert moved.words[1] == movement([word(text, 4)], [text], []).words[0]
    alone = movement([word(text, 0)], [text], [])
    assert (alone.words, alone.states, alone.tried) == ([None], [], [])


def _range(mark: Trace, held: list[Trace]) -> Neutral:
    every = [cosine(each.last_hidden_state[0], mark.last_hidden_state[0]) for each in held]
    return Neutral(mark.text, len(held), [sum(every) / len(every)], [min(every)], [max(every)])


def test_beside_reference_words_the_ends_alone_and_the_neutral_mean() -> None:
    generator = torch.Generator().manual_seed(5)
    text = made_up([torch.randn(3, 16, generator=generator) for _ in range(3)])
    marks = [made_up([torch.randn(1, 16, generator=generator)] * 3, name) for name in ("r", "s")]
    held = [
        made_up([text.hidden_states[-1][:1] + 0.1 * torch.randn(1, 16, generator=generator)] * 3) for _ in range(12)
    ]
    words = [word(text, 0), word(text, 1)]
    placed = [word(each, 0) for each in held]
    moved = movement(words, [text], marks, control=placed, ranges=[_range(mark, held) for mark in marks])
    assert (moved.states, moved.fitted, [len(path or []) for path in moved.words]) == ([2], ["r", "s"], [1, 1])
    assert (moved.tried[-1].neutral, moved.tried[-1].wrong) == (True, 0)
    assert moved.neutral is not None
    assert moved.leaves == [False, True]  # the first word is among the sentences, the second far from them
    other = Control([each.text for each in held], None, ["2"])  # the second word is of other tokens than in them
    told = movement(words, [text], marks, control=placed, ranges=[_range(mark, held) for mark in marks], held=other)
    assert told.leaves == [False, False]
    without = movement(words, [text], marks)
    assert (without.neutral, without.leaves, without.tried[-1].neutral) == (None, [False, False], False)
    assert movement(words[:1], [text], marks[:1]).tried[-1].compared == 0


def test_more_comparisons_than_are_tried_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(6)
    text = made_up([torch.randn(3, 8, generator=generator) for _ in range(4)])
    monkeypatch.setattr("regard.explain.vectors.movement.COMPARED", 2)
    (tried,) = movement([word(text, 0)], [text], []).tried
    assert (tried.compared, tried.wrong) == (12, None)
    assert tried.disagreement == "12 distance comparisons are too many for a plane (limit: 2)"
