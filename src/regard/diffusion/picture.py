"""Draw a painted picture as it is, and grey under the heat of each word, one scale for all."""

from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from regard.display.elements.canvas import STYLE, empty_figure
from regard.display.elements.heatmap import heat_over_picture
from regard.explain.wording import fixed

if TYPE_CHECKING:
    from regard.diffusion.answer import PromptPainting

ACROSS = 4  # pictures beside each other


@matplotlib.rc_context(STYLE)
def draw_prompt(found: "PromptPainting", most: int) -> Figure:
    """Draw the first picture, and it under the heat of the words that stand out most, the mean of all steps."""
    words, picture = found.words[:most], found.painted_as.pictures[0]
    figure = empty_figure(12.0, 6.75, found.title())
    grid = figure.subplots(-(-(1 + len(words)) // ACROSS), ACROSS, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    plain, *heated = grid.flat
    plain.imshow(np.asarray(picture))
    plain.set_title("the image", fontsize=9)
    heats = [found.heat.of(word)[0].numpy() for word in words]
    largest, image = max((float(heat.max()) for heat in heats), default=1.0), None
    for axes, word, heat in zip(heated, words, heats, strict=False):
        edges = (-0.5, picture.width - 0.5, picture.height - 0.5, -0.5)
        axes.imshow(np.asarray(picture.convert("L")), cmap="gray", vmin=0, vmax=255)
        image = heat_over_picture(axes, heat, largest, edges)
        axes.set_title(f"{word.name}: at most {fixed(found.peak(word).times, 2, unbounded=True)}× its mean", fontsize=9)
    if image is not None:
        figure.colorbar(image, ax=grid, fraction=0.02, pad=0.01).set_label("weight", fontsize=8)
    return figure
