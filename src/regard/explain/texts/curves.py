"""Collect how near a word is to each reference word, state by state: what needs no plane to be seen."""

from dataclasses import dataclass

import torch

from regard.explain.texts.summary import Summary
from regard.explain.vectors.neutral import Neutral
from regard.explain.vectors.similarity import cosine


@dataclass(frozen=True)
class Curve:
    """A word's cosines, state by state, to one reference word; to itself as it enters layer 0 where word is None.

    paths: one for each occurrence; [0] is of what enters layer 0, [n + 1] of what leaves layer n, the last of the
    contextual embeddings; None of a state that a trace does not hold. neutral: the same in neutral sentences, as their
    mean and range; None where there are none.
    """

    word: str | None
    paths: list[list[float | None]]
    neutral: Neutral | None


def curves(summary: Summary) -> list[Curve]:
    """Make one for each reference word; where there are none, one of the word beside itself as it enters layer 0."""
    neutral = {each.word: each for each in summary.neutral}
    labels = [each.label for each in summary.occurrences]
    found = []
    for word in dict.fromkeys(each.word for each in summary.references):
        own = {each.occurrence: each.states for each in summary.references if each.word == word}
        found.append(Curve(word, [own[label] for label in labels], neutral.get(word)))
    return found or [Curve(None, [_cosines_to_first_state(each.hidden_states) for each in summary.occurrences], None)]


def _cosines_to_first_state(states: list[list[float] | None]) -> list[float | None]:
    """The cosine of every state to the first."""
    held = [None if each is None else torch.tensor(each, dtype=torch.float64) for each in states]
    return [None if each is None or held[0] is None else cosine(held[0], each) for each in held]
