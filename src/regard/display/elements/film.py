"""Write a film, a GIF: a figure drawn again for each step."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.figure import Figure

from regard.display.elements.plot import notes_of
from regard.files import whole

STAYS = 4  # times that the last frame is shown once more


def write_film(figure: Figure, draw: Callable[[int], object], frames: int, file: Path, *, fps: int = 3) -> list[str]:
    """Write so many frames; returns notes on characters that no font has.

    figure: with its first frame drawn, by which all are laid out. draw: draws frame n, counted from 0.
    """

    def drawn(n: int) -> list[Any]:
        draw(n)
        return []

    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # else every frame is laid out anew, and the picture trembles
    order = [*range(frames), *[frames - 1] * STAYS]
    with warnings.catch_warnings(record=True) as caught, whole(file) as temporary:
        warnings.simplefilter("always")
        FuncAnimation(figure, drawn, frames=order, blit=False).save(temporary, writer=PillowWriter(fps=fps), dpi=100)
    return notes_of(caught)
