"""What a painter paints on its way: a picture file at each of the run's samples, of the same lines and noise."""

from pathlib import Path

import torch

from regard.display.elements.canvas import empty_figure, write_figure
from regard.nn.painter import Painter
from regard.nn.painting import paint
from regard.train.scene_words import read_scene
from regard.train.scenes import SIDE, draw_scenes, scene_ids, scene_of

SHOWN, ACROSS = 12, 4
FOLDER = "samples"


def draw_samples(model: Painter, run: Path, step: int, prompt: str | None = None) -> Path:
    """Paint lines of words, or the prompt several times, into RUN/samples/step-N.png; returns the file.

    Raises:
        RegardError: the prompt is no line that a painter reads, or the file cannot be written.
    """
    drawn = torch.Generator().manual_seed(0)
    digits, corners = draw_scenes(SHOWN, drawn)
    if prompt is not None:
        scene = read_scene(prompt, "--prompt")
        digits, corners = (torch.tensor([each] * SHOWN) for each in (scene.digits, scene.corners))
    noise = torch.randn(SHOWN, SIDE, SIDE, generator=drawn).to(model.device)
    pictures = paint(model, scene_ids(digits, corners).to(model.device), noise).pictures.cpu()
    figure = empty_figure(1.7 * ACROSS, 1.9 * SHOWN / ACROSS)
    for n, picture in enumerate(pictures):
        axes = figure.add_subplot(SHOWN // ACROSS, ACROSS, n + 1)
        axes.imshow(picture.numpy(), cmap="gray_r", vmin=-1, vmax=1)
        axes.set_title(scene_of(digits[n], corners[n]).text.replace(" , ", ",\n"), fontsize=7)
        axes.set_axis_off()
    file = run / FOLDER / f"step-{step:06d}.png"
    file.parent.mkdir(exist_ok=True)
    write_figure(figure, file)
    return file
