"""Positional encodings as pictures: positions down, dimensions (or keys) across."""

from pathlib import Path

from jaxtyping import Float
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from regard.explain.vectors.positions import matrix_names, title
from regard.views.figures.elements.canvas import write
from regard.views.figures.elements.colours import DIFFERENCES, WEIGHTS

DOES = {
    "sinusoidal": "what is added to the embedding at each position",
    "learned": "what is added to the embedding at each position",
    "rotary": "the angle by which each pair of components of queries and keys is turned",
    "alibi": "what is added to the score of a query and a key",
}


def draw_positions(kind: str, pictures: Float[Tensor, "n rows columns"], of: str, file: Path) -> list[str]:
    """Draw the matrices side by side, PNG or SVG, whole or not at all: white at 0, blue below and red above.

    ALiBi, which is never above 0, is the darker the more it takes off; each head has a scale of its own.
    of: whose they are, for the title. Returns notes on missing characters.
    """
    figure = paint_positions(kind, pictures, of)
    return write(figure, file)


def paint_positions(kind: str, pictures: Float[Tensor, "n rows columns"], of: str) -> Figure:
    """The picture as a figure."""
    count = len(pictures)
    across = min(count, 4)
    down = -(-count // across)
    figure = Figure(figsize=(9 if count == 1 else 4.2 * across, 4.6 if down == 1 else 3.6 * down), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{title(kind, pictures, of)}: {DOES[kind]}", fontsize=11)
    names = matrix_names(kind, count)
    # A trained table may have single numbers far beyond all others: the colours end where 99.9 % of it does.
    sizes = pictures.abs().flatten().sort().values
    together = max(float(sizes[int(0.999 * (len(sizes) - 1))]), 1e-12) if kind == "learned" else float(sizes[-1])
    beyond = "both" if float(sizes[-1]) > together else "neither"
    together = max(together, 1e-12)
    axes = figure.subplots(down, across, squeeze=False)
    for place, name, picture in zip(axes.flat, names, pictures, strict=False):
        largest = max(float(picture.abs().max()), 1e-12) if kind == "alibi" else together  # its heads differ 128-fold
        colours, highest = (WEIGHTS.reversed(), 0.0) if kind == "alibi" else (DIFFERENCES, largest)
        image = place.imshow(picture.numpy(), cmap=colours, vmin=-largest, vmax=highest, aspect="auto",
                             interpolation="nearest")  # fmt: skip
        place.set_title(name, fontsize=9)
        place.set_ylabel("query position" if kind == "alibi" else "position", fontsize=8)
        across_name = {"alibi": "key position", "rotary": "pair of components"}.get(kind, "dimension")
        place.set_xlabel(across_name, fontsize=8)
        place.tick_params(labelsize=7)
        bar = figure.colorbar(image, ax=place, fraction=0.04, pad=0.02, extend=beyond)
        bar.ax.tick_params(labelsize=7)
        if beyond == "both":
            bar.set_label(
                f"single numbers reach {float(pictures.min()):z.2f} and {float(pictures.max()):z.2f}", fontsize=7
            )
    for place in list(axes.flat)[count:]:
        place.set_axis_off()
    return figure
