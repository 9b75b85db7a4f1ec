"""A painted line under its heat: the pictures are the trials', the heat is each word's, on one scale; and a film."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from regard.questions.paint.answer import Painting, painting
from regard.questions.paint.picture.heat import WORDS, draw_heat, film
from tests.questions.paint.test_answer import SCENE, small


@pytest.fixture(scope="module")
def found() -> Painting:
    return painting(small(patch=2), SCENE, samples=2)


def test_each_words_heat_lies_over_the_picture(found: Painting) -> None:
    every: Any = draw_heat(found).axes
    trials, heated, bar = every[:5], every[5:11], every[11]
    for axes, trial in zip(trials, found.trials, strict=True):
        ink = torch.tensor(np.asarray(axes.images[0].get_array()))
        torch.testing.assert_close(ink, (trial.painted.pictures[0].clamp(-1, 1) + 1) / 2)
        assert axes.get_title().replace("\n", " ") == trial.name
    assert [axes.get_title() for axes in heated] == ["seven", "top", "left", "two", "bottom", "right"]
    largest = max(float(found.written.heat[0, :, place].max()) for place in WORDS)
    for axes, place in zip(heated, WORDS, strict=True):
        under, over = axes.images
        assert under.get_extent() == over.get_extent() == [-0.5, 15.5, 15.5, -0.5]
        shown = torch.tensor(np.asarray(over.get_array()))
        torch.testing.assert_close(shown, found.written.heat[0, :, place].view(8, 8))
        assert over.norm.vmax == largest
    assert bar.get_ylabel() == "weight"


@pytest.mark.long
def test_a_film_has_a_frame_a_step(found: Painting, tmp_path: Path) -> None:
    assert film(found, tmp_path / "a.gif") == []
    with Image.open(tmp_path / "a.gif") as shown:
        assert shown.n_frames in (20, 24)  # the last frame, repeated, may be one that lasts longer
