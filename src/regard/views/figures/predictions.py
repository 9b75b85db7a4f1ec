"""Pictures of what a language model says next: bars of the likeliest tokens, and what each layer would say."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from regard.explain.logits.logit_lens import LogitLens
from regard.explain.logits.predictions import Prediction
from regard.explain.texts.summary import Summary
from regard.text.quoting import quoted
from regard.views.figures.elements.colours import WEIGHTS
from regard.views.terminal.layout import spelled

ACROSS = 3  # pictures side by side
BAR = "#56b4e9"


def rows(summary: Summary) -> list[tuple[float, Any]]:
    """(height, painter) of the rows: first all bars, then all lenses."""
    bars = [(_bars, each) for each in summary.predictions if not _over(summary, each)]
    logit_lenses = [(_lens, each) for each in summary.logit_lenses]
    made: list[tuple[float, Any]] = []
    for many, height in (
        (bars, 1.0 + 0.2 * summary.top),
        (logit_lenses, 1.2 + 0.26 * max((len(each.layers) for each in summary.logit_lenses), default=0)),
    ):
        for start in range(0, len(many), ACROSS):
            columns = min(ACROSS, max(2, len(many)))
            made.append((height, _row(summary, many[start : start + ACROSS], columns)))
    return made


def _over(summary: Summary, prediction: Prediction) -> bool:
    """Whether it comes after the end token of a text: nothing does."""
    tokens = summary.tokens[prediction.text]
    return prediction.after and prediction.token == len(tokens) - 1 and tokens[-1].special


def _row(
    summary: Summary, many: Sequence[tuple[Callable[..., None], Any]], columns: int
) -> Callable[[FigureBase, Any], None]:
    def paint(figure: FigureBase, place: Any) -> None:
        parts = place.subgridspec(1, columns)
        for column, (draw, each) in enumerate(many):
            draw(figure.add_subplot(parts[column]), summary, each)

    return paint


def _bars(axes: Axes, summary: Summary, prediction: Prediction) -> None:
    """The likeliest tokens of one place."""
    best = prediction.candidates
    places = range(len(best))
    axes.barh(places, [each.probability for each in best], color=BAR, height=0.7)
    axes.set_yticks(places, [spelled(each.text, 16) for each in best], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12)
    axes.set_xticks([])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for place, each in zip(places, best, strict=True):
        axes.text(each.probability + 0.015, place, f"{each.probability:.3f}", va="center", fontsize=8, color="#444444")
    axes.set_title(f"{_where(summary, prediction)}: likeliest tokens", fontsize=10, loc="left")


def _lens(axes: Axes, summary: Summary, lens: LogitLens) -> None:
    """A row for every state, the last on top; cells of the likeliest tokens, as dark as they are likely."""
    layers = lens.layers[::-1]
    values = np.array([[each.probability for each in layer.candidates] for layer in layers])
    axes.imshow(values, cmap=WEIGHTS, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    for i, layer in enumerate(layers):
        for j, each in enumerate(layer.candidates):
            final = each.id == lens.final.id
            colour = "white" if values[i, j] > 0.55 else "black"
            weight = "bold" if final else "normal"
            axes.text(
                j, i, spelled(each.text, 10), ha="center", va="center", fontsize=7.5, color=colour, fontweight=weight
            )
    tick_labels = ["enters" if layer.state == 0 else f"after {layer.state - 1}" for layer in layers]
    axes.set_yticks(range(len(layers)), tick_labels, fontsize=7)
    axes.set_xticks(range(values.shape[1]), [str(n + 1) for n in range(values.shape[1])], fontsize=7)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(f"{_where(summary, lens)}: what each layer would say", fontsize=10, loc="left")
    axes.set_xlabel(
        f"its likeliest tokens, as dark as likely; bold: {quoted(spelled(lens.final.text, 16))}, the model's own",
        fontsize=7,
    )


def _where(summary: Summary, each: Prediction | LogitLens) -> str:
    label = each.occurrence or summary.labels[each.text]
    return f"{label}: {'after' if each.after else 'at'} {quoted(spelled(each.at, 16))}"
