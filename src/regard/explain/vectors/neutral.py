"""Measure how near a word is to reference words where nothing is said of its meaning: the control of its movement.

A word's cosine to a reference word means little alone: the word has one in every sentence. So the word is put into
neutral sentences, and its states there are held against the reference word's own, state n against state n, as those of
the texts are. What a text does to the word is what leaves the range of these.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.explain.vectors.massive_activations import MASSIVE, own, state_lengths_over_median
from regard.explain.vectors.similarity import cosine
from regard.text.neutral_sentences import LEAST
from regard.text.quoting import quoted
from regard.text.words import Word
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace
from regard.trace.word_rows import vector


@dataclass(frozen=True)
class Neutral:
    """A reference word beside the followed one in neutral sentences: mean, smallest and largest cosine of every state.

    [0] is of what enters layer 0, [n + 1] of what leaves layer n, the last of the contextual embeddings, behind the
    final norm where there is one; None of a state that a trace does not hold. The reference word is a text of its own.
    sentences: how many have the word.
    """

    word: str
    sentences: int
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


@dataclass(frozen=True)
class Difference:
    """The cosine to one reference word minus the cosine to another, in neutral sentences, as `Neutral` has cosines.

    words: the two reference words, whose difference sets two occurrences furthest apart in the last state.
    """

    words: tuple[str, str]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


@dataclass(frozen=True)
class Control:
    """What the neutral sentences can be taken for.

    sentences: those in which the word is made of the same tokens as in a text. refused: why there is no range, None
    where there is one. otherwise: the labels of occurrences that are of tokens of which too few sentences have it.
    """

    sentences: list[str]
    refused: str | None
    otherwise: list[str]


def neutral(
    word: str, occurrences: Sequence[tuple[str, Trace, Word]], control: Sequence[Trace], references: Sequence[Trace]
) -> tuple[list[Neutral], Control, list[tuple[Trace, Word]]]:
    """Compute a word's cosines to reference words in the neutral sentences whose traces are control.

    Returned are also what the sentences can be taken for, and where the word counts in them, a trace each time.

    Where the word stands several times in a sentence, each counts; where its state is a massive activation, none does.
    An occurrence is held against sentences in which the word is of the same tokens, 12 at least; the range is of all
    such sentences, whatever occurrence they are for.
    """
    spelled = {label: _ids_of_followed_word(trace, each) for label, trace, each in occurrences}
    placed = _word_in_neutral_sentences(word, control)
    enough, most = _enough(placed, set(spelled.values()))
    refused = None
    if not enough:
        like = "" if most == len(control) else " as the tokens that it is in a text"
        refused = f"{most} of {len(control)} neutral sentences {'has' if most == 1 else 'have'} {quoted(word)}{like}, "
        refused += f"{LEAST} are needed"
    same = [
        (trace, [each for each in words if _ids_of_followed_word(trace, each) in enough]) for trace, words in placed
    ]
    used = [(trace, words) for trace, words in same if words]
    otherwise = [label for label, ids in spelled.items() if enough and ids not in enough]
    made = Control([trace.text for trace, _ in used], refused, otherwise)
    ranges = [] if refused else [_beside(reference, used) for reference in references]
    return ranges, made, [(trace, each) for trace, words in used for each in words]


def _word_in_neutral_sentences(word: str, control: Sequence[Trace]) -> list[tuple[Trace, list[Word]]]:
    """Where the word stands in each sentence, but for massive activations."""
    whole = bool(control) and all(len(kept_numbers(t.hidden_states)) == len(t.hidden_states) for t in control)
    times = state_lengths_over_median(control) if whole else {}
    placed: list[tuple[Trace, list[Word]]] = []
    for number, trace in enumerate(control, 1):
        try:
            found = trace.word(word)
        except RegardError as error:
            raise RegardError(f"control: sentence {number}: {error}") from None
        lengths = times.get(id(trace))
        kept = [each for each in found if lengths is None or float(lengths[list(each.tokens)].max()) <= MASSIVE]
        placed.append((trace, kept))
    return placed


def _enough(
    placed: Sequence[tuple[Trace, Sequence[Word]]], wanted: set[tuple[int, ...]]
) -> tuple[set[tuple[int, ...]], int]:
    """The wanted tokens that enough sentences have, and how many have those that most have."""
    counts = Counter(ids for trace, words in placed for ids in {_ids_of_followed_word(trace, each) for each in words})
    return {ids for ids in wanted if counts[ids] >= LEAST}, max((counts[ids] for ids in wanted), default=0)


def largest_difference(
    references: Sequence[Trace], ends: Sequence[Sequence[float]], in_control: Sequence[tuple[Trace, Word]]
) -> Difference | None:
    """Find the two reference words whose difference of cosines sets two occurrences furthest apart.

    ends: for each reference, its cosine to each occurrence in the last state. in_control: as `neutral` returns it. None
    for one reference word, or if the number of occurrences isn't 2.
    """
    apart = [one[0] - one[1] for one in ends if len(one) == 2]
    if len(apart) < len(ends) or not in_control or len(apart) < 2 or max(apart) == min(apart):
        return None
    plus, minus = (references[apart.index(pick(apart))] for pick in (max, min))
    rows = [
        [
            math.nan if a is None or b is None else a - b
            for a, b in zip(*(state_cosines_to_reference(trace, word, each) for each in (plus, minus)), strict=True)
        ]
        for trace, word in in_control
    ]
    return Difference((plus.text, minus.text), *_mean_and_range(rows))


def direction(cosine: float, neutral: Neutral) -> Literal["towards", "away from"] | None:
    """Tell whether a cosine of contextual embeddings leaves the neutral range, at the two decimals that are shown."""
    low, high = neutral.low[-1], neutral.high[-1]
    if low is None or high is None or not math.isfinite(cosine):
        return None
    shown, least, most = (float(f"{each:z.2f}") for each in (cosine, low, high))
    return "towards" if shown > most else "away from" if shown < least else None


def state_cosines_to_reference(trace: Trace, word: Word, reference: Trace) -> list[float | None]:
    """Compare a word's states with those of a reference word, all of its own tokens, in the same space: state by state.

    The last is the cosine of the contextual embeddings; None for a state that one of the traces does not hold.
    """
    tokens = own(reference)
    held = set(kept_numbers(trace.hidden_states)) & set(kept_numbers(reference.hidden_states))
    found: list[float | None] = [
        cosine(vector(trace.hidden_states[n], word), reference.hidden_states[n][tokens].mean(0)) if n in held else None
        for n in range(len(trace.hidden_states) - 1)
    ]
    return [*found, cosine(vector(trace.last_hidden_state, word), reference.last_hidden_state[tokens].mean(0))]


def _beside(reference: Trace, used: Sequence[tuple[Trace, Sequence[Word]]]) -> Neutral:
    rows = [state_cosines_to_reference(trace, word, reference) for trace, words in used for word in words]
    return Neutral(reference.text, len(used), *_mean_and_range(rows))


def _mean_and_range(rows: Sequence[Sequence[float | None]]) -> Iterator[list[float | None]]:
    """Return mean, smallest and largest number of each state, None where one of them is not known."""
    states = [_cosines_of_known_state(column) for column in zip(*rows, strict=True)]
    for part in (torch.mean, torch.amin, torch.amax):
        yield [None if each is None else float(part(each)) for each in states]


def _cosines_of_known_state(column: Sequence[float | None]) -> Float[Tensor, " n"] | None:
    """One state's cosines, or None where one of them is not known."""
    values = [each for each in column if each is not None and math.isfinite(each)]
    return torch.tensor(values, dtype=torch.float64) if len(values) == len(column) else None


def _ids_of_followed_word(trace: Trace, word: Word) -> tuple[int, ...]:
    return tuple(trace.tokens[n].id for n in word.tokens)
