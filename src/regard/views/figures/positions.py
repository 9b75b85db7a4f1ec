"""Positional encodings as pictures: positions down, dimensions (or keys) across."""

from pathlib import Path

import torch
from jaxtyping import Float
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console
from rich.text import Text
from torch import Tensor

from regard.errors import RegardError
from regard.nn import positions
from regard.views.figures.canvas import write
from regard.views.terminal.layout import columns, put, section

ROWS, COLUMNS = 6, 6  # how much of a picture is printed
AXES = ("rows", "columns")
HEADS = 8  # ALiBi is drawn for this many heads


def encoding(kind: str, length: int, width: int) -> Float[Tensor, "n length _"]:
    """What a kind does to positions 0 to length - 1, as n pictures of numbers.

    sinusoidal: one of what is added, (length, width). rotary: the cosine and the sine of the angle that each pair of
    components is turned by, (length, width / 2). alibi: of each of 8 heads the bias, (length, length).

    Raises:
        RegardError: no such kind, or sizes that it cannot have.
    """
    try:
        if kind == "sinusoidal":
            return positions.sinusoidal(length, width)[None]
        if kind == "rotary":
            angles = positions.rotary_angles(torch.arange(length), width)
            return torch.stack([angles.cos(), angles.sin()])
        if kind == "alibi":
            at = torch.arange(length)
            return positions.alibi_bias(positions.alibi_slopes(HEADS), at, at)
    except ValueError as error:
        raise RegardError(f"positions: {error}") from None
    raise RegardError(f"--kind {kind!r}: needs sinusoidal, learned, rotary or alibi")


def show_positions(kind: str, pictures: Float[Tensor, "n rows columns"], of: str, console: Console) -> None:
    """Print the first rows and columns of each picture."""
    parts = []
    for name, picture in zip(_names(kind, len(pictures)), pictures, strict=True):
        corner = picture[:ROWS, :COLUMNS]
        rows = columns(("", "right"), *((str(n), "right") for n in range(corner.shape[1])))
        for n, row in enumerate(corner.tolist()):
            rows.add_row(str(n), *(f"{x:.4f}" for x in row))
        left = [f"{size - cut} more {what}" for size, cut, what in zip(picture.shape, corner.shape, AXES, strict=True)
                if size > cut]  # fmt: skip
        title = _title(kind, pictures, of) + (f": {name}" if name else "")
        parts.append(section(title, rows, Text(f"left out here: {', '.join(left)}" if left else "", style="dim")))
    put(parts, console)


def draw_positions(kind: str, pictures: Float[Tensor, "n rows columns"], of: str, file: Path) -> list[str]:
    """Write the pictures side by side, PNG or SVG, whole or not at all: diverging colours, white at 0.

    of: whose they are, for the title. Returns notes on missing characters.
    """
    count = len(pictures)
    across = min(count, 4)
    down = -(-count // across)
    figure = Figure(figsize=(9 if count == 1 else 4.2 * across, 4.6 if down == 1 else 3.6 * down), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(_title(kind, pictures, of), fontsize=11)
    names = _names(kind, count)
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
        place.set_title(name, fontsize=9)
        place.set_ylabel("query position" if kind == "alibi" else "position", fontsize=8)
        across_name = {"alibi": "key position", "rotary": "pair of components"}.get(kind, "dimension")
        place.set_xlabel(across_name, fontsize=8)
        place.tick_params(labelsize=7)
        figure.colorbar(image, ax=place, fraction=0.04, pad=0.02, extend=beyond).ax.tick_params(labelsize=7)
    for place in list(axes.flat)[count:]:
        place.set_axis_off()
    return write(figure, file)


def _names(kind: str, count: int) -> list[str]:
    return {"rotary": ["cosine", "sine"], "alibi": [f"head {n}" for n in range(count)]}.get(kind, [""])


def _title(kind: str, pictures: Tensor, of: str) -> str:
    rows, across = pictures.shape[1:]
    return f"{kind} positions{of}, {rows} × {across}"
