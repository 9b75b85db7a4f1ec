"""The occurrences of a word as points on their first two principal axes, each in the colour and sign of its sense."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from regard.corpus.asking.sense_sentences import sense_label, senses_title
from regard.corpus.asking.senses import Senses
from regard.files import whole
from regard.views.figures.elements.colours import LINES
from regard.views.terminal.layout import short

SIGNS = ("o", "s", "^", "D")  # of the first four senses, and the next four


def draw_senses(found: Senses, file: Path) -> None:
    """Draw the scatter into a .png or .svg file, whole or not at all.

    Raises:
        RegardError: the file system refuses.
    """
    figure = sense_figure(found)
    with whole(file) as temporary:
        figure.savefig(temporary, dpi=150, metadata={"Date": None} if file.suffix.lower() == ".svg" else None)


def sense_figure(found: Senses) -> Figure:
    """Make the figure: one scale on both axes, and each sense's best example where its centroid's nearest one lies."""
    figure = Figure(figsize=(8, 6), layout="constrained")
    axes = figure.add_subplot()
    size = float(np.clip(4000 / max(len(found.points), 1), 4, 40))
    for number, sense in enumerate(found.senses):
        own = found.points[found.clusters.labels == number]
        sign = SIGNS[(number + number // len(LINES)) % len(SIGNS)]
        label = short(sense_label(found, sense), 60)
        axes.scatter(own[:, 0], own[:, 1], s=size, marker=sign, color=LINES[number % len(LINES)], alpha=0.7,
                     linewidths=0, label=label, gid=f"sense {number}")  # fmt: skip
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend(title="sense", fontsize=8, title_fontsize=8)
    kept = " + ".join(f"{part:.0%}" for part in found.axes)
    axes.set_xlabel(f"first two principal axes of layer {found.layer}: {kept} of the variance", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.set_title(short(senses_title(found), 90), fontsize=10)
    return figure
