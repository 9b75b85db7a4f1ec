"""The loss curve of a training run, as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regard.views.figures.elements.canvas import write
from regard.views.figures.elements.colours import LINES


def draw_loss(log: Sequence[dict[str, Any]], file: Path) -> None:
    """Draw the loss of each update, in nats a token, its running mean, and the validation loss."""
    write(paint_loss(log), file)


def paint_loss(log: Sequence[dict[str, Any]]) -> Figure:
    """The picture as a figure."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    steps = [line["step"] for line in log]
    losses = torch.tensor([line["loss"] for line in log], dtype=torch.float64)
    axes.plot(steps, losses, color="#9ec9e8", linewidth=0.7, label="each update")
    span = max(1, len(losses) // 50)
    if len(losses) > 2 * span:
        mean = losses.unfold(0, span, 1).mean(1)
        axes.plot(steps[span - 1 :], mean, color=LINES[0], linewidth=1.5, label=f"mean of {span}")
    held = [(line["step"], line["validation"]) for line in log if line["validation"] is not None]
    if held:
        axes.plot(
            *zip(*held, strict=True),
            "o-",
            color=LINES[1],
            markersize=4,
            label=f"held out: {held[-1][1]:.3f} at step {held[-1][0]}",
        )
    axes.set_xlabel("step")
    axes.set_ylabel("loss (nats a token)")
    axes.set_title(
        f"Training loss: {losses[0]:.2f} at step {steps[0]}, {losses[-1]:.2f} at step {steps[-1]}", fontsize=10
    )
    axes.legend(frameon=False)
    return figure
