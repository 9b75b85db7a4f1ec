"""Scenes: digits where the words say, drawn from seed and place alone, and held-out digits apart."""

import sys

import pytest
import torch

from regard import RegardError
from regard.nn.painter import patches
from regard.train.scene_words import WORDS
from regard.train.scenes import DigitPictures, Scenes, draw_scenes, read_digits, scene_ids, scene_of, scene_pictures

# Each "picture" of a digit is filled with a number that says which one it is.
MARKED = DigitPictures(torch.arange(30.0)[:, None, None].expand(30, 8, 8), torch.arange(10).repeat_interleave(3))


def test_digits_stand_where_the_words_say() -> None:
    drawn = torch.Generator().manual_seed(5)
    digits, corners = draw_scenes(200, drawn)
    cells = patches(scene_pictures(MARKED, digits, corners, drawn), 2)  # (n, 4, 64)
    assert torch.equal(cells.amin(-1), cells.amax(-1))
    found = cells[..., 0]
    for n, (row, words) in enumerate(zip(found, scene_ids(digits, corners), strict=True)):
        scene = scene_of(digits[n], corners[n])
        assert [WORDS[each] for each in words] == scene.words
        for corner in range(4):
            kind = row[corner] // 3 if corner in scene.corners else -1
            assert kind == (scene.digits[scene.corners.index(corner)] if corner in scene.corners else -1)
    assert set(found.unique().tolist()) == {-1.0, *map(float, range(30))}  # all of a kind are drawn


def test_two_corners_and_every_digit() -> None:
    digits, corners = draw_scenes(3000, torch.Generator().manual_seed(0))
    assert (corners[:, 0] != corners[:, 1]).all()
    assert corners.flatten().bincount().min() > 1300
    assert digits.flatten().bincount(minlength=10).min() > 500
    assert 200 < int((digits[:, 0] == digits[:, 1]).sum()) < 400
    other, _ = draw_scenes(3000, torch.Generator().manual_seed(0), different=True)
    assert (other[:, 0] != other[:, 1]).all()
    assert other[:, 1].bincount(minlength=10).min() > 200


def test_digits_held_out_are_others() -> None:
    trained, held = read_digits()
    assert (len(trained.labels), len(held.labels)) == (1200, 597)
    for each in (trained, held):
        assert each.pictures.shape[1:] == (8, 8)
        assert (float(each.pictures.min()), float(each.pictures.max())) == (-1.0, 1.0)
        assert each.labels.bincount().min() > 40
        assert (each.labels.diff() >= 0).all()
    seen = {each.numpy().tobytes() for each in trained.pictures}
    assert not any(each.numpy().tobytes() in seen for each in held.pictures)


def test_batches_follow_from_seed_and_place() -> None:
    scenes = Scenes(batch=17, seed=3)
    one, after = scenes.batch((0, 4))
    again, _ = Scenes(batch=17, seed=3).batch((0, 4))
    assert after == (0, 5)
    assert torch.equal(one.noisy, again.noisy)
    for other in (scenes.batch(after)[0], Scenes(batch=17, seed=4).batch((0, 4))[0]):
        assert not torch.equal(one.words, other.words)
    noise = (one.noisy - one.time[:, None, None] * one.pictures) / (1 - one.time)[:, None, None]
    assert abs(float(noise.std()) - 1) < 0.05
    assert one.tokens == 17 * 256
    first, second = (list(scenes.validation(most)) for most in (None, 2))
    assert (len(first), len(second)) == (4, 2)
    assert torch.equal(first[1].noisy, second[1].noisy)


def test_parts_of_several_processes_add_up() -> None:
    batch, _ = Scenes(batch=5, seed=0).batch((0, 0))

    class Zero(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = torch.nn.Parameter(torch.zeros(1))

        def forward(self, noisy: torch.Tensor, time: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
            return noisy * self.one

    whole = (batch.pictures**2).sum()
    parts = [batch.part(rank, 7) for rank in range(7)]
    assert sum(part.tokens for part in parts) == batch.tokens
    torch.testing.assert_close(sum(part.loss(Zero(), 0.0) for part in parts), whole)
    assert parts[6].loss(Zero(), 0.0) == 0


def test_without_scikit_learn_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(RegardError, match=r'scikit-learn is not installed .*: pip install "regard\[painter\]"'):
        read_digits()
