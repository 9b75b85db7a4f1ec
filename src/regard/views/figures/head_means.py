"""What heads do over a whole corpus, as one small grid a score: a row for each layer, a column for each head."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from regard.corpus.asking.head_means import HeadMeans
from regard.files import whole

OPEN_ENDED = {"entropy": "nats", "distance": "tokens"}  # the others are shares from 0 to 1
ACROSS = 3


def draw_head_means(found: HeadMeans, file: Path) -> None:
    """Draw the grids into a .png or .svg file, whole or not at all.

    Raises:
        RegardError: the file system refuses.
    """
    figure = head_means_figure(found)
    with whole(file) as temporary:
        figure.savefig(temporary, dpi=150, metadata={"Date": None} if file.suffix.lower() == ".svg" else None)


def head_means_figure(found: HeadMeans) -> Figure:
    """Make the figure; grids of shares have one scale, from 0 to the largest share of all."""
    names = list(found.scores)
    figure = Figure(figsize=(10, 2.6 * -(-len(names) // ACROSS)), layout="constrained")
    shares = [np.nanmax(found.scores[name]) for name in names if name not in OPEN_ENDED and _has(found.scores[name])]
    grid = figure.subplots(-(-len(names) // ACROSS), ACROSS, squeeze=False)
    for axes, name in zip(grid.flat, names, strict=False):
        most = float(np.nanmax(found.scores[name])) if name in OPEN_ENDED and _has(found.scores[name]) else max(shares)
        image = axes.imshow(found.scores[name], vmin=0, vmax=most, cmap="Blues", aspect="auto", gid=name)
        axes.set_title(f"{name} ({OPEN_ENDED.get(name, 'share')})", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.set_xlabel("head", fontsize=7)
        axes.set_ylabel("layer", fontsize=7)
        figure.colorbar(image, ax=axes).ax.tick_params(labelsize=7)
    for axes in list(grid.flat)[len(names) :]:
        axes.set_visible(False)
    return figure


def _has(values: np.ndarray) -> bool:
    """Whether there is a score at all."""
    return bool((values == values).any())
