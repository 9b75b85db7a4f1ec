"""What made an outcome, as a picture: bars of the parts that sum to it, or a map of heads."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import matplotlib
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regard.explain.causes.attribution import Attribution
from regard.explain.causes.head_gradients import HeadAttribution
from regard.explain.findings.attribution import Attributed
from regard.explain.findings.wording import signed
from regard.views.figures.elements.canvas import write
from regard.views.figures.elements.colours import DIFFERENCES
from regard.views.figures.elements.heatmap import heatmap
from regard.views.terminal.layout import visible

MOST = 24  # bars; the parts that matter less are one more together, so that nothing is left out
WIDE = 48  # characters of a bar's name
BAR = 0.26  # inches
LETTER = 0.08  # inches, of a title


def draw_attribution(found: Attributed, file: Path, by: Literal["token", "word"] = "token") -> list[str]:
    """Write the picture, PNG or SVG by the file's ending, whole or not at all; returns notes on missing characters."""
    return write(paint_attribution(found, by), file)


def paint_attribution(found: Attributed, by: Literal["token", "word"] = "token") -> Figure:
    """The picture as a figure: of heads one map, layers down, for each kind of attention; of others one bar a part."""
    with matplotlib.rc_context({"text.parse_math": False}):
        if isinstance(found, HeadAttribution):
            return _heads(found)
        if isinstance(found, Attribution):
            return _bars(found.by("token", words=by == "word"), f"{found.outcome}: {signed(found.value)}", "adds")
        against = "" if found.baseline is None else f", baseline {signed(found.baseline)}"
        return _bars(
            found.by(by), f"{found.outcome_name}: {signed(found.outcome)}{against}", f"score by {found.method}"
        )


def _bars(parts: Sequence[tuple[str, float]], title: str, label: str) -> Figure:
    """The largest parts from above, the others together below."""
    shown, rest = list(parts[:MOST]), parts[MOST:]
    if rest:
        shown.append(("1 other" if len(rest) == 1 else f"{len(rest):,} others together", sum(each for _, each in rest)))
    figure = Figure(figsize=(7.5, 1.3 + BAR * len(shown)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    numbers = [each for _, each in shown]
    colours = [DIFFERENCES(0.85 if each >= 0 else 0.15) for each in numbers]
    places = range(len(shown))
    axes.barh(places, numbers, color=colours, height=0.75)
    axes.set_yticks(places, [_short(name) for name, _ in shown])
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    for place, number in zip(places, numbers, strict=True):
        left = number < 0
        axes.annotate(
            signed(number), (number, place), xytext=(-3 if left else 3, 0), textcoords="offset points", va="center",
            ha="right" if left else "left", fontsize=7,
        )  # fmt: skip
    axes.margins(x=0.15, y=0.01)
    axes.tick_params(labelsize=8)
    axes.set_xlabel(label, fontsize=8)
    axes.set_title(title, fontsize=10)
    return figure


def _heads(found: HeadAttribution) -> Figure:
    """A map for each kind of attention: layers down, heads across."""
    kinds = list(dict.fromkeys((call.part, call.nth) for call in found.calls))
    sizes = [
        [len(s) for c, s in zip(found.calls, found.scores, strict=True) if (c.part, c.nth) == kind] for kind in kinds
    ]
    high, wide = max(map(len, sizes)), max(max(each) for each in sizes)
    name = f"{found.outcome_name}: {signed(found.outcome)}"
    across = max((1.8 + 0.36 * wide) * len(kinds) + 0.4, 0.6 + LETTER * max(len(name), 44))
    figure = Figure(figsize=(across, 1.7 + 0.3 * high), layout="constrained")
    FigureCanvasAgg(figure)
    for n, (part, nth) in enumerate(kinds):
        own = [(c, s) for c, s in zip(found.calls, found.scores, strict=True) if (c.part, c.nth) == (part, nth)]
        rows = torch.full((len(own), max(len(scores) for _, scores in own)), 0.0, dtype=torch.float64)
        for row, (_, scores) in enumerate(own):
            rows[row, : len(scores)] = scores
        names = [str(call.layer) for call, _ in own], [str(head) for head in range(rows.shape[1])]
        title = (part or "") + (f" call {nth}" if nth else "")
        axes = figure.add_subplot(1, len(kinds), n + 1)
        heatmap(rows, *names, title=title, diverging=True, labels=("layer", "head"), axes=axes)
        axes.set_aspect("auto")
    figure.suptitle(f"{name}\nwhat each head brought, to the first order", fontsize=10)
    return figure


def _short(name: str) -> str:
    name = visible(name)
    return name if len(name) <= WIDE else name[: WIDE - 1] + "…"
