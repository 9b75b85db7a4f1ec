"""Find the patches of a sweep that give the other text's outcome by construction, whatever the model does.

Only patches of hidden states can, and they do so for one of two reasons:

    "elsewhere"    what enters or leaves that layer is the same in both texts at all other places: with the patch the
                   run goes on as the other text's. Of texts that differ in one word, what enters layer 0 at that word
    "read"         what leaves the last layer, where the outcome is read: no token looks at another behind it

Their shares say how the texts and the outcome were chosen, and nothing of the model.
"""

from collections.abc import Sequence
from typing import Literal

import torch

from regard.capture.interventions.names import Part
from regard.explain.causes.outcomes import AnyTrace
from regard.trace.trace import Trace

Reason = Literal["elsewhere", "read"]
Layer = int | Literal["input"]
Tokens = tuple[int, ...]

NEAR = 5e-3  # of the way: as near as a share of 100 % is printed
ALIKE = 1e-6  # of the largest component: states of two passes that differ by rounding alone


def by_construction(
    run: AnyTrace,
    source: AnyTrace,
    part: Part | None,
    layers: Sequence[Layer],
    places: Sequence[tuple[Tokens, Tokens]],
    outcomes: Sequence[Sequence[float]],
    ends: tuple[float, float],
    *,
    estimated: bool = False,
) -> tuple[tuple[int, int, Reason], ...]:
    """List (row, column, reason) of the patches of hidden states that are so by construction, row by row.

    part: of an encoder-decoder. layers: of each row. places: of each column the patched tokens of the run, and those of
    the source. outcomes: (rows, columns). ends: the outcomes of the run and of the source. estimated: whether outcomes
    are estimates, of all places, which need not reach the source's. A measured patch that does not reach it is never
    listed: some family then carries more from layer to layer than hidden states.
    """
    if ends[0] == ends[1]:
        return ()
    found: list[tuple[int, int, Reason]] = []
    last = len(patched_side_of_trace(run, part).hidden_states) - 1
    for row, layer in enumerate(layers):
        state = 0 if layer == "input" else layer + 1
        for column, (here, there) in enumerate(places):
            reached = abs(outcomes[row][column] - ends[1]) <= NEAR * abs(ends[1] - ends[0])
            alone = all(each == ends[0] for n, each in enumerate(outcomes[row]) if n != column)
            if (reached or estimated) and _same_outside_patch(run, source, part, state, here, there):
                found.append((row, column, "elsewhere"))
            elif state == last and part != "encoder" and (alone if estimated else reached):
                found.append((row, column, "read"))
    return tuple(found)


def _same_outside_patch(
    run: AnyTrace, source: AnyTrace, part: Part | None, state: int, here: Tokens, there: Tokens
) -> bool:
    """Whether two runs hold the same in a state at all tokens but these, and in all else that is read after it."""
    mine, theirs = patched_side_of_trace(run, part), patched_side_of_trace(source, part)
    if here != there or len(mine.tokens) != len(theirs.tokens):
        return False
    others = [n for n in range(len(mine.tokens)) if n not in here]
    if not _patched_states_alike(mine.hidden_states[state][others], theirs.hidden_states[state][others]):
        return False
    if part is None:
        return True
    number, other = (-1, 0) if part == "decoder" else (0, 1)  # what the encoder gave; what the decoder reads
    return _patched_states_alike(run.sides[other].hidden_states[number], source.sides[other].hidden_states[number])


def _patched_states_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape:
        return False
    return not one.numel() or float((one - other).abs().max()) <= ALIKE * float(one.abs().max())


def patched_side_of_trace(trace: AnyTrace, part: Part | None) -> Trace:
    """Return the trace of the stack that a part is in; of one stack the trace itself."""
    return trace if isinstance(trace, Trace) else trace.encoder if part == "encoder" else trace.decoder
