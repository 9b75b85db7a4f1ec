"""What heads do, as one small grid a score: a row for each layer, a column for each head."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from regard.explain.findings.head_means import counted
from regard.explain.weights.head_means import HeadMeans
from regard.explain.weights.score_meanings import MEANINGS, is_share
from regard.files import whole

ACROSS = 3


def draw_head_means(found: HeadMeans, file: Path) -> None:
    """Draw the grids of a corpus's heads into a .png or .svg file, whole or not at all.

    Raises:
        RegardError: the file system refuses.
    """
    draw_heads({"": found}, file)


def draw_heads(tables: Mapping[str, HeadMeans], file: Path) -> None:
    """Draw the grids of several tables, below each other, into a .png or .svg file, whole or not at all.

    tables: by what they are of.

    Raises:
        RegardError: the file system refuses.
    """
    figure = heads_figure(tables)
    with whole(file) as temporary:
        figure.savefig(temporary, dpi=150, metadata={"Date": None} if file.suffix.lower() == ".svg" else None)


def heads_figure(tables: Mapping[str, HeadMeans]) -> Figure:
    """Make the figure; grids of shares have one scale, from 0 to the largest share of all."""
    lines = [-(-len(found.scores) // ACROSS) for found in tables.values()]
    figure = Figure(figsize=(10, 2.6 * sum(lines) + 0.3 * len(lines)), layout="constrained")
    parts = figure.subfigures(len(lines), 1, height_ratios=lines, squeeze=False)[:, 0]
    grids = [(found, name) for found in tables.values() for name in found.scores if is_share(name)]
    share = max((float(np.nanmax(found.scores[name])) for found, name in grids if _has(found.scores[name])), default=1)
    for part, count, (title, found) in zip(parts, lines, tables.items(), strict=True):
        if title:
            part.suptitle(title, fontsize=10)
        _draw(found, part.subplots(count, ACROSS, squeeze=False), share)
    return figure


def _draw(found: HeadMeans, grid: np.ndarray, share: float) -> None:
    """Draw one table's grids. grid: of axes. share: the largest share of all."""
    for axes, name in zip(grid.flat, found.scores, strict=False):
        values = found.scores[name]
        most = float(np.nanmax(values)) if not is_share(name) and _has(values) else share
        image = axes.imshow(values, vmin=0, vmax=most, cmap="Blues", aspect="auto", gid=name)
        axes.set_title(f"{name} ({MEANINGS[name].unit}), {counted(found, name)}", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.set_xlabel("head", fontsize=7)
        axes.set_ylabel("layer", fontsize=7)
        axes.figure.colorbar(image, ax=axes).ax.tick_params(labelsize=7)
    for axes in list(grid.flat)[len(found.scores) :]:
        axes.set_visible(False)


def _has(values: np.ndarray) -> bool:
    """Whether there is a score at all."""
    return bool((values == values).any())
