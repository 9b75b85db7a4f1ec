"""Pictures of how a watched sentence's attention and embeddings formed while a model was trained."""

import warnings
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from regard.explain.evolution import Evolution
from regard.files import whole
from regard.views.figures.canvas import missing_glyphs, write
from regard.views.terminal.layout import spelled

MOST = 12  # steps that small multiples show


def draw_evolution(found: Evolution, file: Path) -> list[str]:
    """How the attention formed: small multiples with the embeddings' path below, or (.gif) one frame a step.

    Returns notes on missing characters.
    """
    if file.suffix.lower() == ".gif":
        with matplotlib.rc_context({"text.parse_math": False}):
            return _animate(found, file)
    chosen = _spread(len(found.steps))
    across = min(4, len(chosen))
    down = -(-len(chosen) // across)
    figure = _figure(3.3 * across, 3.1 * down + 4.6)
    grid = figure.add_gridspec(down + 1, across, height_ratios=[3.1] * down + [4.6])
    image, every = None, []
    for place, n in enumerate(chosen):
        axes = figure.add_subplot(grid[place // across, place % across])
        every.append(axes)
        image = _weights(axes, found, n, names=place % across == 0, below=place + across >= len(chosen))
    if image is not None:
        figure.colorbar(image, ax=every, fraction=0.03, pad=0.01, label="weight").ax.tick_params(labelsize=7)
    _paths(figure.add_subplot(grid[down, :]), found, len(found.steps))
    figure.suptitle(found.title, fontsize=11)
    return write(figure, file)


def _animate(found: Evolution, file: Path) -> list[str]:
    figure = _figure(11.5, 4.8)
    left, right = figure.subplots(1, 2)
    colours = figure.colorbar(_weights(left, found, 0, names=True, below=True), ax=left, fraction=0.04, label="weight")
    colours.ax.tick_params(labelsize=7)

    def frame(n: int) -> list[Any]:
        left.clear()
        right.clear()
        _weights(left, found, n, names=True, below=True)
        _paths(right, found, n + 1)
        return []

    figure.suptitle(found.title, fontsize=11)
    frames = [*range(len(found.steps)), *[len(found.steps) - 1] * 4]  # the end stays for a while
    with warnings.catch_warnings(record=True) as caught, whole(file) as temporary:
        warnings.simplefilter("always")
        FuncAnimation(figure, frame, frames=frames, blit=False).save(temporary, writer=PillowWriter(fps=3), dpi=110)
    return missing_glyphs(caught, "gif")


def _weights(axes: Axes, found: Evolution, n: int, *, names: bool, below: bool) -> AxesImage:
    largest = max(float(max(map(max, rows))) for rows in found.weights)
    image = axes.imshow(found.weights[n], cmap="cividis", vmin=0, vmax=largest, aspect="auto", interpolation="nearest")
    axes.set_title(f"step {found.steps[n]}", fontsize=9)
    size = 7 if max(len(found.queries), len(found.keys)) <= 24 else 5
    if names and len(found.queries) <= 48:
        axes.set_yticks(range(len(found.queries)), [spelled(name, 12) for name in found.queries], fontsize=size)
    else:
        axes.set_yticks([])
    if below and len(found.keys) <= 48:
        axes.set_xticks(range(len(found.keys)), [spelled(name, 12) for name in found.keys], fontsize=size, rotation=90)
    else:
        axes.set_xticks([])
    return image


def _paths(axes: Axes, found: Evolution, until: int) -> None:
    """Where the tokens' learned embeddings went, on one plane for all steps."""
    colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777")
    seen = set()
    for number, (name, path) in enumerate(zip(found.embedded, found.paths, strict=True)):
        xs, ys = zip(*path[:until], strict=True)
        colour = colours[number % len(colours)]
        axes.plot(xs, ys, "-", color=colour, linewidth=0.8, alpha=0.7)
        axes.plot(xs[-1:], ys[-1:], "o", color=colour, markersize=4)
        if len(found.embedded) <= 40 and name not in seen:
            axes.annotate(spelled(name, 12), (xs[-1], ys[-1]), xytext=(4, 3), textcoords="offset points",
                          fontsize=7, color=colour)  # fmt: skip
        seen.add(name)
    points = [point for path in found.paths for point in path]
    for low_high, set_limits in (
        ([x for x, _ in points], axes.set_xlim),
        ([y for _, y in points], axes.set_ylim),
    ):
        margin = 0.08 * (max(low_high) - min(low_high)) or 1.0
        set_limits(min(low_high) - margin, max(low_high) + margin)
    axes.set_title(f"learned embeddings, on one plane ({sum(found.share):.0%} of the variance); dots: now", fontsize=9)
    axes.tick_params(labelsize=7)


def _spread(count: int) -> list[int]:
    """At most MOST of them, the first and the last among them."""
    if count <= MOST:
        return list(range(count))
    return sorted({round(n * (count - 1) / (MOST - 1)) for n in range(MOST)})


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
