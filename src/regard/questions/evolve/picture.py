"""Pictures of how a watched sentence's attention and embeddings formed while a model was trained."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure, FigureBase

from regard.display.elements.canvas import empty_figure, stack_rows_in_figure
from regard.display.elements.colours import DIFFERENCES, LINES, WEIGHTS, weight_scale
from regard.display.elements.film import write_film
from regard.display.elements.labels import framed_label_points
from regard.display.elements.slide import Row
from regard.display.elements.weight_cells import bare, frame
from regard.display.panels import TALL
from regard.explain.wording import in_plot, short_head
from regard.questions.evolve.panels import MOST, evenly
from regard.questions.evolve.sentences import of_change
from regard.text.quoting import spelled

if TYPE_CHECKING:
    from regard.questions.evolve.answer import Evolution

WIDE = 13.0  # inches
NAMED = 40  # tokens up to which axes and paths have names
NUMBERED = 12  # and up to which cells have numbers
NEVER = "#e9e9e9"  # what has no weight at any step: the future, to a causal model
Values = Any  # a (queries, keys) array


def paint_evolution(found: "Evolution", shape: str = TALL) -> Figure:
    """Draw how the attention formed.

    Where there are several steps: the weights of the first and the last, their difference, small the difference to the
    first at up to twelve steps, and the entropy and the change of each. Then the path of the tokens' learned
    embeddings.
    """
    tokens = max(len(found.queries), len(found.keys))
    high = min(6.5, max(3.8, 1.9 + 0.19 * tokens))
    rows = [Row(high, lambda figure, place: _ends(figure, place, found), "the first and the last step")]
    if len(found.steps) > 2:
        rows.append(Row(2.0, lambda figure, place: _between(figure, place, found), "the steps between", False))
    if len(found.steps) > 1 or found.paths:
        rows.append(Row(4.8, lambda figure, place: _rest(figure, place, found), "entropy, change and embeddings"))
    return stack_rows_in_figure(rows, WIDE, shape)


def _title(found: "Evolution") -> str:
    """What is shown, and below it which weight changed most."""
    first, last = found.steps[0], found.steps[-1]
    if len(found.steps) == 1:
        return f"{found.title()}: step {first}{_grey(found)}"
    title = f"{found.title()}: steps {first} to {last}{_grey(found)}"
    return f"{title}\n{of_change(found)}"


def _ends(figure: FigureBase, place: Any, found: "Evolution") -> None:
    """The first step, the last, and what lies between."""
    last = len(found.steps) - 1
    parts = place.subgridspec(1, 3 if last else 1)
    shown = [0, last] if last else [0]
    for at, n in enumerate(shown):
        axes = figure.add_subplot(parts[at])
        image = _weights(axes, found, n)
        axes.set_title(
            f"step {found.steps[n]}" + ("" if not last else ": the first" if n == 0 else ": the last"), fontsize=10
        )
        _names(axes, found, down=at == 0)
        if at == len(shown) - 1:
            _bar(figure, image, axes, "weight, square-root scale")
    if last:
        axes = figure.add_subplot(parts[2])
        image = _difference(axes, found, last)
        axes.set_title(f"the difference: step {found.steps[last]} less step {found.steps[0]}", fontsize=10)
        _names(axes, found, down=False)
        spot = found.most_changed()
        if spot is not None:
            frame(axes, *spot)
        _bar(figure, image, axes, "difference of weights")
    figure.suptitle(_title(found), fontsize=11)


def _between(figure: FigureBase, place: Any, found: "Evolution") -> None:
    """The difference to the first step at several later ones, in the colours of the large one."""
    chosen = [1 + n for n in evenly(len(found.steps) - 1, MOST)]
    parts = place.subgridspec(1, max(4, len(chosen)))
    for at, n in enumerate(chosen):
        axes = figure.add_subplot(parts[at])
        _difference(axes, found, n, numbers=False)
        axes.set_xticks([])
        axes.set_yticks([])
        bare(axes, "#cccccc")
        axes.set_title(f"step {found.steps[n]}", fontsize=8, color="#555555")
        if at == 0:
            axes.set_ylabel("less the first", fontsize=8, color="#555555")


def _rest(figure: FigureBase, place: Any, found: "Evolution") -> None:
    """Entropy, change and, where it formed, induction by step, beside the paths of the embeddings."""
    several = len(found.steps) > 1
    parts = place.subgridspec(
        1, 2 if several and found.paths else 1, width_ratios=(1, 1.6) if several and found.paths else (1,)
    )
    if several:
        series = [
            (found.steps, found.entropy, "entropy in nats, mean of the tokens"),
            (found.steps[1:], found.change[1:], "mean change since the step before"),
        ]
        if (head := found.formed_head()) is not None:
            series.append((found.steps, found.induction_of(*head), f"induction of head {short_head(*head)}"))
        lines, upper = parts[0].subgridspec(len(series), 1), None
        for at, (steps, values, what) in enumerate(series):
            axes = upper = figure.add_subplot(lines[at], sharex=upper)  # the first step, with none before it, has room
            axes.plot(steps, values, "-o", color=LINES[0], markersize=3, linewidth=1.4)
            axes.set_title(what, fontsize=9)
            axes.tick_params(labelsize=7)
            if at:
                axes.set_ylim(0, 1.1 * max(*values, 1e-9))
            axes.set_xlabel("step" if at == len(series) - 1 else "", fontsize=8)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
    if found.paths:
        room = (WIDE * 1.6 / 2.6 - 0.7, 4.0) if several else (WIDE - 0.7, 4.0)
        _paths(figure.add_subplot(parts[1 if several else 0]), found, len(found.steps), room)


def film(found: "Evolution", file: Path) -> list[str]:
    """Write a frame a step: weights, their difference to the start, paths so far; returns missing characters."""
    across = 3 if found.paths else 2
    figure = empty_figure(5.2 * across, 5.2)
    every = figure.subplots(1, across)

    def frame_of(n: int, *, bars: bool = False) -> None:
        for axes in every:
            axes.clear()
        image = _weights(every[0], found, n)
        every[0].set_title(f"step {found.steps[n]}", fontsize=10)
        _names(every[0], found, down=True)
        difference = _difference(every[1], found, n)
        every[1].set_title(f"step {found.steps[n]} less step {found.steps[0]}", fontsize=10)
        _names(every[1], found, down=False)
        if found.paths:
            _paths(every[2], found, n + 1, (4.2, 4.0))
        if bars:
            _bar(figure, image, every[0], "weight, square-root scale")
            _bar(figure, difference, every[1], "difference of weights")

    frame_of(0, bars=True)
    figure.suptitle(_title(found), fontsize=11)
    return write_film(figure, frame_of, len(found.steps), file)


def _weights(axes: Axes, found: "Evolution", n: int) -> Any:
    values = np.array(found.weights[n])
    return _cells(
        axes, values, np.array(found.never), {"cmap": WEIGHTS, "norm": weight_scale(1.0)}, lambda value: value > 0.36
    )


def _difference(axes: Axes, found: "Evolution", n: int, *, numbers: bool = True) -> Any:
    """The difference to the first step, in colours that end at the largest of any step."""
    largest = max(float(np.abs(found.from_start(m)).max()) for m in range(len(found.steps))) or 1.0
    settings = {"cmap": DIFFERENCES, "vmin": -largest, "vmax": largest}
    return _cells(
        axes, np.array(found.from_start(n)), np.array(found.never), settings, lambda value: abs(value) > 0.6 * largest,
        numbers=numbers,
    )  # fmt: skip


def _cells(
    axes: Axes, values: Values, never: Values, settings: dict[str, Any], dark: Any, *, numbers: bool = True
) -> Any:
    axes.set_facecolor(NEVER)
    image = axes.imshow(np.ma.masked_array(values, never), aspect="auto", interpolation="nearest", **settings)
    if numbers and max(values.shape) <= NUMBERED:
        for (i, j), value in np.ndenumerate(values):
            if not never[i, j] and abs(value) >= 0.005:
                ink = "white" if dark(value) else "#333333"
                axes.text(j, i, in_plot(value, 2), ha="center", va="center", fontsize=6.5, color=ink)
    return image


def _grey(found: "Evolution") -> str:
    return "; grey: no weight at any step" if any(map(any, found.never)) else ""


def _names(axes: Axes, found: "Evolution", *, down: bool) -> None:
    size = 8 if max(len(found.queries), len(found.keys)) <= 16 else 6.5
    axes.set_xticks([])
    axes.set_yticks([])
    if len(found.keys) <= NAMED:
        axes.set_xticks(range(len(found.keys)), [spelled(name, 12) for name in found.keys], fontsize=size, rotation=50,
                        ha="right", rotation_mode="anchor")  # fmt: skip
    if len(found.queries) <= NAMED and down:
        axes.set_yticks(range(len(found.queries)), [spelled(name, 12) for name in found.queries], fontsize=size)
    axes.set_xlabel("attended to (key)", fontsize=8)
    if down:
        axes.set_ylabel("attending (query)", fontsize=8)
    bare(axes)


def _bar(figure: FigureBase, image: Any, axes: Axes, what: str) -> None:
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    bar.set_label(what, fontsize=8)


def _paths(axes: Axes, found: "Evolution", until: int, room: tuple[float, float]) -> None:
    """Where the tokens' learned embeddings went, on one plane for all steps: the later, the darker."""
    labels = framed_label_points(axes, [point for path in found.paths for point in path], *room)
    axes.set_aspect("equal")
    count = max(2, len(found.steps))
    labels.keep_free([path[until - 1] for path in found.paths], 5.0)
    for name, path in zip(found.embedded, found.paths, strict=True):
        points = np.array(path[:until])
        colours = [WEIGHTS(0.3 + 0.7 * (n + 1) / (count - 1)) for n in range(until - 1)]
        axes.add_collection(LineCollection([*np.stack([points[:-1], points[1:]], 1)], colors=colours, linewidths=1.3))
        axes.plot(*points[-1], "o", color=WEIGHTS(1.0), markersize=4, gid=f"end {name}")
        if len(found.embedded) <= NAMED:
            labels.put(spelled(name, 12), path[until - 1], 8.0, color="#222222")
    kept = sum(found.share)
    title = ["learned embeddings, the later the darker", f"(a plane with {kept:.0%} of the variance)"]
    axes.set_title((" " if room[0] > 6 else "\n").join(title), fontsize=9)
    axes.tick_params(labelsize=7)
