"""Find the trivial patches of a sweep, which give the other text's outcome in any model.

Only patches of hidden states can be trivial, for one of two reasons:

    "elsewhere"    the hidden states of that layer are the same in both texts at all other positions, so that the run
                   continues as the other text's. Example: texts that differ in one word, patched there at the input
    "read"         the patch is after the last layer, at the position that the outcome is read from

Their effects depend on the texts and the outcome only, not on the model.
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

NEAR = 5e-3  # a fraction nearer to 1 is printed as 100 %
ALIKE = 1e-6  # of the largest component: smaller differences of two passes are rounding errors


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
    """List (row, column, reason) of the trivial patches of hidden states, row by row.

    part: of an encoder-decoder. layers: of the rows. places: for each column, the patched tokens of the run, and those
    of the source. outcomes: (rows, columns). ends: outcomes of the run and of the source. estimated: outcomes are
    estimates of all positions, which need not reach the source's outcome. A measured patch that does not reach it is
    never listed: some architectures carry more from layer to layer than hidden states.
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
    """Return whether two runs have the same state at all other tokens, and in the other stack if it is read."""
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
