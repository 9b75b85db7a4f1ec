"""Compare a word with reference words in neutral sentences, as a control for the texts' effect on the word.

A word's cosine to a reference word means little alone, because it may be the same in any sentence. So regard also
compares the word's states in neutral sentences with those of the reference word, state by state. A text has an effect
on the word if its cosine is outside the range of these.
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
from regard.explain.vectors.similarity import cosine
from regard.text.neutral_sentences import MIN_SENTENCES
from regard.text.quoting import quoted
from regard.text.words import Word
from regard.trace.labelled_map import vector
from regard.trace.layers import kept_numbers
from regard.trace.trace import Trace

# A state of at least this many times the median length, in any layer, is massive. Such activations (Sun et al. 2024,
# "Massive Activations in Large Language Models") occur at few tokens, usually the first. They are in the same few
# components for every token, so any two such states are similar. SmolLM2 reaches 160 times the median at the first
# token of a text and at most 3 elsewhere, MiniLM at most 1.6.
MASSIVE = 10.0


@dataclass(frozen=True)
class Massive:
    """A word or reference word with a massive activation: its state in some layer has `times` the median length.

    kind: "word" or "reference". of: the label of the occurrence, empty for a reference word.
    """

    kind: str
    name: str
    of: str
    times: float


@dataclass(frozen=True)
class Neutral:
    """Cosines of the followed word to a reference word in neutral sentences: mean, smallest and largest per state.

    [0] is for the input of layer 0, [n + 1] for the output of layer n, and the last for the last hidden state, after
    the final norm if there is one. A state that a trace lacks is None. The reference word is a separate text.
    sentences: the number of sentences with the word.
    """

    word: str
    sentences: int
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


@dataclass(frozen=True)
class Difference:
    """The cosine to one reference word minus the cosine to another, in neutral sentences: mean and range per state.

    words: the two reference words. In the last state, their difference separates two occurrences most.
    """

    words: tuple[str, str]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


@dataclass(frozen=True)
class Control:
    """The neutral sentences that serve as a control.

    sentences: those in which the word has the same tokens as in a text. refused: the reason why there is no range, or
    None. otherwise: the labels of occurrences whose tokens occur in too few sentences.
    """

    sentences: list[str]
    refused: str | None
    otherwise: list[str]


def not_special(trace: Trace) -> list[int]:
    """Return the numbers of a trace's tokens that aren't special."""
    return [n for n, token in enumerate(trace.tokens) if not token.special]


def state_lengths_over_median(traces: Sequence[Trace], others: Sequence[Trace] = ()) -> dict[int, Float[Tensor, " L"]]:
    """Divide each token's state length by the median, in the layer with the largest ratio. Keys are id() of the trace.

    A layer's median is over the tokens of `traces` that aren't special. others: compared with it as well.
    """
    largest = {id(trace): torch.zeros(len(trace.tokens), dtype=torch.float64) for trace in (*traces, *others)}
    for n in range(len(traces[0].hidden_states)):
        lengths = {id(trace): trace.hidden_states[n].double().norm(dim=1).cpu() for trace in (*traces, *others)}
        median = torch.cat([lengths[id(trace)][not_special(trace)] for trace in traces]).median()
        for key, length in lengths.items():
            largest[key] = torch.maximum(largest[key], length / median.clamp_min(1e-30))
    return largest


def massive_activations(
    words: Sequence[tuple[str, Trace, Word]], traces: Sequence[Trace], references: Sequence[Trace]
) -> list[Massive]:
    """Find words (each with its label and trace) and reference words with massive activations: cosines mean little."""
    times = state_lengths_over_median(traces, references)
    named = [("word", word.text, label, trace, list(word.tokens)) for label, trace, word in words]
    named += [("reference", reference.text, "", reference, not_special(reference)) for reference in references]
    results = [Massive(kind, name, of, float(times[id(trace)][at].max())) for kind, name, of, trace, at in named]
    return [massive for massive in results if massive.times > MASSIVE]


def neutral(
    word: str, occurrences: Sequence[tuple[str, Trace, Word]], control: Sequence[Trace], references: Sequence[Trace]
) -> tuple[list[Neutral], Control, list[tuple[Trace, Word]]]:
    """Compute a word's cosines to reference words in neutral sentences. control: traces of the sentences.

    Also return the `Control`, and the word's occurrences that were used, each with its trace.

    All occurrences of the word in a sentence are used, except those with a massive activation. An occurrence in a text
    is compared with sentences in which the word has the same tokens, at least 12 of them. There is one range, over all
    sentences that any occurrence is compared with.
    """
    ids_of = {label: _ids_of_followed_word(trace, item) for label, trace, item in occurrences}
    complete = bool(control) and all(len(kept_numbers(t.hidden_states)) == len(t.hidden_states) for t in control)
    times = state_lengths_over_median(control) if complete else {}
    placed: list[tuple[Trace, list[Word]]] = []  # occurrences in each sentence, none massive
    for number, trace in enumerate(control, 1):
        try:
            matches = trace.word(word)
        except RegardError as error:
            raise RegardError(f"control: sentence {number}: {error}") from None
        lengths = times.get(id(trace))
        kept = [item for item in matches if lengths is None or float(lengths[list(item.tokens)].max()) <= MASSIVE]
        placed.append((trace, kept))
    counts = Counter(ids for trace, words in placed for ids in {_ids_of_followed_word(trace, item) for item in words})
    enough = {ids for ids in ids_of.values() if counts[ids] >= MIN_SENTENCES}
    count = max((counts[ids] for ids in ids_of.values()), default=0)
    refused = None
    if not enough:
        like = "" if count == len(control) else " as the tokens that it is in a text"
        refused = f"{count} of {len(control)} neutral sentences {'has' if count == 1 else 'have'} {quoted(word)}{like}"
        refused += f", {MIN_SENTENCES} are needed"
    same = [(trace, word) for trace, words in placed for word in words if _ids_of_followed_word(trace, word) in enough]
    sentences = [trace.text for trace in {id(trace): trace for trace, _ in same}.values()]
    ranges = []
    for reference in [] if refused else references:
        rows = [state_cosines_to_reference(trace, word, reference) for trace, word in same]
        ranges.append(Neutral(reference.text, len(sentences), *_mean_and_range(rows)))
    otherwise = [label for label, ids in ids_of.items() if enough and ids not in enough]
    return ranges, Control(sentences, refused, otherwise), same


def largest_difference(
    references: Sequence[Trace], ends: Sequence[Sequence[float]], in_control: Sequence[tuple[Trace, Word]]
) -> Difference | None:
    """Find the two reference words whose difference of cosines separates two occurrences most.

    ends: for each reference, its cosine to each occurrence in the last state. in_control: as `neutral` returns it.
    Returns None for a single reference word, or unless there are two occurrences.
    """
    differences = [one[0] - one[1] for one in ends if len(one) == 2]
    if len(differences) < len(ends) or not in_control or len(differences) < 2 or max(differences) == min(differences):
        return None
    plus, minus = (references[differences.index(pick(differences))] for pick in (max, min))
    rows = []
    for trace, word in in_control:
        pairs = zip(*(state_cosines_to_reference(trace, word, reference) for reference in (plus, minus)), strict=True)
        rows.append([None if a is None or b is None else a - b for a, b in pairs])
    return Difference((plus.text, minus.text), *_mean_and_range(rows))


def direction(cosine: float, neutral: Neutral) -> Literal["towards", "away from"] | None:
    """Return the direction in which a cosine leaves the neutral range, or None. Both are rounded to two decimals."""
    low, high = neutral.low[-1], neutral.high[-1]
    if low is None or high is None or not math.isfinite(cosine):
        return None
    rounded, lowest, highest = (float(f"{value:z.2f}") for value in (cosine, low, high))
    return "towards" if rounded > highest else "away from" if rounded < lowest else None


def state_cosines_to_reference(trace: Trace, word: Word, reference: Trace) -> list[float | None]:
    """Compute the cosine of each state of a word to the same state of a reference word (the mean over its tokens).

    The last is for the last hidden states. A state that one of the traces lacks is None.
    """
    tokens = not_special(reference)
    kept = set(kept_numbers(trace.hidden_states)) & set(kept_numbers(reference.hidden_states))
    cosines: list[float | None] = [
        cosine(vector(trace.hidden_states[n], word), reference.hidden_states[n][tokens].mean(0)) if n in kept else None
        for n in range(len(trace.hidden_states) - 1)
    ]
    return [*cosines, cosine(vector(trace.last_hidden_state, word), reference.last_hidden_state[tokens].mean(0))]


def _mean_and_range(rows: Sequence[Sequence[float | None]]) -> Iterator[list[float | None]]:
    """Yield the mean, smallest and largest number of each state, None for states without numbers."""
    states = []
    for column in zip(*rows, strict=True):
        values = [value for value in column if value is not None and math.isfinite(value)]
        states.append(torch.tensor(values, dtype=torch.float64) if len(values) == len(column) else None)
    for part in (torch.mean, torch.amin, torch.amax):
        yield [None if values is None else float(part(values)) for values in states]


def _ids_of_followed_word(trace: Trace, word: Word) -> tuple[int, ...]:
    return tuple(trace.tokens[n].id for n in word.tokens)
