"""Pictures on the way: of the same lines and noise at each step, or of the prompt."""

from pathlib import Path

import pytest
from matplotlib import image

from regard import RegardError
from regard.nn.painter import Painter
from regard.nn.painter_config import PainterConfig
from regard.questions.paint.picture.samples import draw_samples
from regard.train.scene_words import LENGTH, WORDS


def test_samples_are_files_of_a_step(tmp_path: Path) -> None:
    painter = Painter(PainterConfig(vocabulary=len(WORDS), length=LENGTH, layers=1, d_model=6))
    file = draw_samples(painter, tmp_path, 7)
    assert file == tmp_path / "samples" / "step-000007.png"
    drawn = image.imread(file)
    assert drawn.shape[0] > 300
    same = image.imread(draw_samples(painter, tmp_path, 8))
    assert (drawn == same).all()
    other = image.imread(draw_samples(painter, tmp_path, 9, "a seven top left, a two top right"))
    assert drawn.shape != other.shape or (drawn != other).any()
    with pytest.raises(RegardError, match="--prompt 'cat'"):
        draw_samples(painter, tmp_path, 9, "cat")
