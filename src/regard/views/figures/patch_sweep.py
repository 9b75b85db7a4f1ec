"""A sweep of patches as a picture: shares of the way to the source's outcome, layers up and patches across."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from regard.explain.causes.patch_sweep import PatchSweep
from regard.text.tokens import shortened
from regard.views.figures.elements.canvas import write

NAMED = 64  # columns up to which each has its name
NUMBERED = 12  # columns up to which cells have numbers
CELL = 0.42  # inches


def draw_patches(sweep: PatchSweep, file: Path) -> list[str]:
    """Write the picture, PNG or SVG by the file's ending; returns notes on missing characters."""
    return write(paint_patches(sweep), file)


def paint_patches(sweep: PatchSweep) -> Figure:
    """The picture as a figure; one scale of colours, from -1 to 1 or further where shares go further."""
    with matplotlib.rc_context({"text.parse_math": False}):
        rows, across = len(sweep.layers), len(sweep.columns)
        size = (min(16.0, max(6.5, 2.4 + CELL * across)), min(14.0, max(3.4, 2.0 + 0.3 * rows)))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        shares = np.array(sweep.shares)
        known = np.abs(shares[np.isfinite(shares)])
        most = max(1.0, float(known.max())) if known.size else 1.0
        image = axes.imshow(shares, vmin=-most, vmax=most, cmap="RdBu_r", aspect="auto", origin="lower", gid="shares")
        axes.set_yticks(range(rows), [str(layer) for layer in sweep.layers])
        axes.set_ylabel("layer")
        if across <= NAMED:
            names = [each.removeprefix("head ") for each in sweep.columns]
            axes.set_xticks(range(across), names, rotation=0 if sweep.by == "heads" else 60)
        axes.set_xlabel("head" if sweep.by == "heads" else "token")
        if across <= NUMBERED:
            for (row, column), share in np.ndenumerate(shares):
                if np.isfinite(share):
                    colour = "white" if abs(share) > 0.6 * most else "black"
                    axes.text(
                        column,
                        row,
                        f"{share:z.2f}",
                        ha="center",
                        va="center",
                        fontsize=7,
                        color=colour,
                    )
        bar = figure.colorbar(image, ax=axes)
        bar.set_label(f"share of the way from {sweep.run:.3g} to {sweep.source:.3g}")
        figure.suptitle(f"{sweep.direction}: {sweep.what}, {sweep.outcome}", fontsize=11)
        axes.set_title(f"clean {shortened(sweep.clean, 60)}\ncorrupted {shortened(sweep.corrupted, 60)}", fontsize=9)
    return figure
