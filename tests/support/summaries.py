"""A summary of what a test says, all else empty: for sentences and pictures that take a whole one."""

from collections.abc import Sequence

from regard.explain.texts.occurrences import ComparedWord, Occurrence
from regard.explain.texts.summary import Summary
from regard.explain.vectors.movement import Movement
from regard.explain.vectors.neutral import Neutral


def bare_summary(
    word: str, labels: Sequence[str], moved: Movement | None, references: Sequence[str], neutral: int
) -> Summary:
    """Occurrences with these labels, a movement, reference words, and the count of neutral sentences (0: none)."""
    return Summary(
        word=word, top=5, layers=[], labels=["1"], windows=[], texts=[""], tokens=[[]], sinks=[[]],
        occurrences=[Occurrence(label, 0, word, 0, 0, [], None, [], [], [], [], None) for label in labels],
        pairs=[], references=[ComparedWord(name, label, None, 0.0, []) for name in references for label in labels],
        highlights=[], movement=moved, layer_updates=[], predictions=[], logit_lenses=[], statuses=[],
        reference_statuses=[], target=None,
        neutral=[Neutral(name, neutral, [], [], []) for name in references if neutral],
    )  # fmt: skip
