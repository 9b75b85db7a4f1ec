"""Draw a painted line: its pictures, and under the heat of each word the one that is painted as written; or a film."""

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from regard.display.elements.canvas import SLIDE, empty_figure
from regard.display.elements.film import write_film
from regard.display.elements.heatmap import heat_over_picture
from regard.train.scene_words import PHRASES
from regard.train.scenes import SIDE

if TYPE_CHECKING:
    from regard.questions.paint.answer import Painting

STRIP = 12.0, 2.7  # inches of a film
WORDS = [place for phrase in PHRASES for place in phrase[1:]]  # the digits, and the words of their places
PALE = 2.2  # of the picture under heat: ink of 1 is a grey that heat is seen on


def draw_heat(found: "Painting") -> Figure:
    """Draw the first picture of every trial, and below it the first as written under each word's heat.

    Heat is the mean of steps, layers and heads; its scale is that of all the words.
    """
    figure = empty_figure(*SLIDE, found.title())
    above, below = figure.subfigures(2, 1, squeeze=False)[:, 0]
    above.suptitle("painted from the same noise", fontsize=9)
    below.suptitle("as written, under where each word is looked at: mean of steps, layers and heads", fontsize=9)
    every = above.subplots(1, len(found.trials))
    for axes, trial in zip(every, found.trials, strict=True):
        _picture(axes, trial.painted.pictures[0], trial.name.replace(" of ", " of\n").replace(" to ", " to\n"))
    heated = below.subplots(1, len(WORDS))
    largest = float(found.written.heat[0][:, WORDS].max())
    for axes, place in zip(heated, WORDS, strict=True):
        _picture(axes, found.written.pictures[0], found.scene.words[place], ink=1 / PALE)
        image = _lay_heat_over(axes, found.written.heat[0, :, place], largest)
    below.colorbar(image, ax=heated, fraction=0.02, pad=0.01).set_label("weight", fontsize=8)
    return figure


def film(found: "Painting", file: Path) -> list[str]:
    """Write a frame a step: the picture that is expected, and it under each word's heat at that step.

    Returns notes on characters that no font has.
    """
    expected = found.written.expected[:, 0]  # (steps, R, R)
    heat = found.written.weights[:, :, 0].mean((1, 2))[..., WORDS]  # (steps, P, words)
    figure = empty_figure(*STRIP, found.title(), letters=10)
    first, *heated = figure.subplots(1, 1 + len(WORDS))

    def frame(n: int) -> None:
        for axes in (first, *heated):
            axes.clear()
        _picture(first, expected[n], f"step {n}")
        for axes, place, own in zip(heated, WORDS, heat[n].unbind(-1), strict=True):
            _picture(axes, expected[n], found.scene.words[place], ink=1 / PALE)
            _lay_heat_over(axes, own, float(heat.max()))

    frame(0)
    return write_film(figure, frame, len(expected), file)


def _picture(axes: Axes, picture: Tensor, title: str, ink: float = 1.0) -> None:
    """A picture of -1 paper and 1 ink. ink: how dark ink is drawn, of 1."""
    axes.imshow((ink * (picture.clamp(-1, 1).cpu() + 1) / 2).numpy(), cmap="gray_r", vmin=0, vmax=1)
    axes.set_title(title, fontsize=9)
    axes.set(xticks=[], yticks=[])


def _lay_heat_over(axes: Axes, heat: Tensor, largest: float) -> object:
    """A word's heat (P,) over a picture that is drawn."""
    grid, edges = round(len(heat) ** 0.5), (-0.5, SIDE - 0.5, SIDE - 0.5, -0.5)
    return heat_over_picture(axes, heat.view(grid, grid).cpu().numpy(), largest, edges)
