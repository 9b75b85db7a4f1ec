"""Positional encodings as pictures: positions down, dimensions (or keys) across."""

from pathlib import Path

from jaxtyping import Float
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from regard.explain.positions import matrix_names, title
from regard.views.figures.canvas import write


def draw_positions(kind: str, pictures: Float[Tensor, "n rows columns"], of: str, file: Path) -> list[str]:
    """Draw the matrices side by side, PNG or SVG, whole or not at all: diverging colours, white at 0.

    of: whose they are, for the title. Returns notes on missing characters.
    """
    count = len(pictures)
    across = min(count, 4)
    down = -(-count // across)
    figure = Figure(figsize=(9 if count == 1 else 4.2 * across, 4.6 if down == 1 else 3.6 * down), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title(kind, pictures, of), fontsize=11)
    names = matrix_names(kind, count)
    # A trained table may have single numbers far beyond all others: the colours end where 99.9 % of it does.
    sizes = pictures.abs().flatten().sort().values
    together = max(float(sizes[int(0.999 * (len(sizes) - 1))]), 1e-12) if kind == "learned" else float(sizes[-1])
    beyond = "both" if float(sizes[-1]) > together else "neither"
    together = max(together, 1e-12)
    axes = figure.subplots(down, across, squeeze=False)
    for place, name, picture in zip(axes.flat, names, pictures, strict=False):
        largest = max(float(picture.abs().max()), 1e-12) if kind == "alibi" else together  # its heads differ 128-fold
        image = place.imshow(picture.numpy(), cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto",
                             interpolation="nearest")  # fmt: skip
        place.settitle(name, fontsize=9)
        place.set_ylabel("query position" if kind == "alibi" else "position", fontsize=8)
        across_name = {"alibi": "key position", "rotary": "pair of components"}.get(kind, "dimension")
        place.set_xlabel(across_name, fontsize=8)
        place.tick_params(labelsize=7)
        figure.colorbar(image, ax=place, fraction=0.04, pad=0.02, extend=beyond).ax.tick_params(labelsize=7)
    for place in list(axes.flat)[count:]:
        place.set_axis_off()
    return write(figure, file)
