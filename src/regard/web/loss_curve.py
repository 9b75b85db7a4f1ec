"""The loss of a training run as a curve: every update's while there is room, then means over as many updates each."""

from collections.abc import Sequence

import numpy as np

from regard.web.panels import curve, curves
from regard.web.score_rules import Data

MOST = 400  # points of a line


def loss_panel(
    steps: Sequence[int],
    losses: Sequence[float],
    validations: Sequence[tuple[int, float]],
    *,
    smoothing: float = 0.0,
    name: str = "Loss",
) -> Data:
    """Write the curve. validations: (step, loss) where it was measured. smoothing: of the labels, in the loss."""
    training, size = _line("training", steps, losses)
    lines, notes = [training], [_each("each update's own", "updates", size)]
    if smoothing:
        notes[0] += f", with labels smoothed by {smoothing:g}"
    if validations:
        held, size = _line("held out", [step for step, _ in validations], [loss for _, loss in validations])
        lines.append(held)
        notes.append(_each("what is not trained on", "evaluations", size, "held out"))
    return curves("Loss, step by step", "; ".join(notes), "step", "loss in nats a token", lines, digits=4, name=name)


def _each(what: str, of: str, size: int, line: str = "training") -> str:
    if size == 1:
        return f"{line}: {what}"
    return f"{line}: {what}, each point the mean of {size} {of}, the band from their least to their largest"


def _line(name: str, steps: Sequence[int], values: Sequence[float]) -> tuple[Data, int]:
    """A line of at most MOST points, and how many values make one: a power of two, so that points stay in place."""
    size = 1
    while -(-len(values) // size) > MOST:
        size *= 2
    if size == 1:
        return curve(name, steps, values), 1
    starts = list(range(0, len(values), size))
    ends = [*starts[1:], len(values)]
    numbers = np.asarray(values, np.float64)
    low, high = np.minimum.reduceat(numbers, starts), np.maximum.reduceat(numbers, starts)
    means = np.add.reduceat(numbers, starts) / np.subtract(ends, starts)
    first, last = [steps[start] for start in starts], [steps[end - 1] for end in ends]
    return curve(name, last, means.tolist(), spread=(first, low.tolist(), high.tolist())), size
