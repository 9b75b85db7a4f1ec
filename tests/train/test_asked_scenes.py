"""What a seer learns from: the question names the corner in which the answer's digit stands."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from regard.nn.seer_config import IMAGE
from regard.train.asked_scenes import QUESTIONS, AskedScenes, seer_tokenizer, write_pictures
from regard.train.batches import IGNORED
from regard.train.scene_words import DIGITS
from regard.train.scenes import DigitPictures

TOKENIZER = seer_tokenizer()
# Each "picture" of a digit is filled with a number that says which one it is.
MARKED = DigitPictures(torch.arange(10.0)[:, None, None].expand(10, 8, 8), torch.arange(10))


def data(seed: int = 1, batch: int = 5) -> AskedScenes:
    return AskedScenes(TOKENIZER, 16, batch=batch, seed=seed)


def test_the_answer_is_the_digit_in_the_corner_asked_about() -> None:
    batch, corners = data().asked(MARKED, 101, torch.Generator().manual_seed(3))
    for ids, labels, pixels, corner in zip(batch.ids, batch.labels, batch.pixels, corners, strict=True):
        assert TOKENIZER.decode(ids) == f"{IMAGE} " * 16 + QUESTIONS[corner]
        row, column = divmod(int(corner), 2)
        cell = pixels[:, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] - 1
        assert (labels[:-1] == IGNORED).all()
        assert TOKENIZER.decode(labels[-1:]) == DIGITS[int(cell.unique())]
    assert (batch.tokens, set(corners.tolist())) == (101, {0, 1, 2, 3})


def test_batches_follow_from_seed_and_place_and_only_those_learned_from_are_noisy() -> None:
    first, place = data().batch((0, 7))
    again, _ = data().batch((0, 7))
    other, _ = data().batch(place)
    assert place == (0, 8)
    assert torch.equal(first.pixels, again.pixels)
    assert not torch.equal(first.pixels, other.pixels)
    assert float(first.pixels.min()) < 0
    (held,) = data(seed=2).validation(1)
    assert torch.equal(held.pixels, next(data(seed=1).validation()).pixels)
    assert float(held.pixels.min()) == 0
    assert torch.equal(first.part(1, 2).pixels, first.pixels[1::2])


def test_pictures_are_written_as_a_person_would_draw_them(tmp_path: Path) -> None:
    files = write_pictures(data(), tmp_path)
    assert len(files) == 6
    shown = np.asarray(Image.open(files[0]))
    assert shown.shape == (256, 256)
    assert (shown.max(), shown.min() < 30, np.median(shown) > 200) == (255, True, True)
    assert files[0].stem.isdigit()
