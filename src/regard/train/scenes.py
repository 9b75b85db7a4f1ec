"""Scenes to learn from: handwritten digits in corners of a picture, drawn from a seed and a place alone.

The digits are scikit-learn's (Alpaydin and Kaynak 1998, "Optical Recognition of Handwritten Digits"): 1,797 of 8 × 8
pixels. 1,200 of them are learned from; the others are held out, and train whoever judges what was painted.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import RegardError
from regard.train.scene_words import ARTICLE, COLUMNS, COMMA, DIGIT_PLACES, DIGITS, LENGTH, NUMBER, ROWS, Scene

CELL, SIDE = 8, 16  # pixels of a corner's side, and of the picture's
TRAINED = 1_200  # digits that are painted from
PAPER = -1.0  # a pixel where nothing is; ink is up to 1
VALIDATED = 4  # batches of held-out digits
Drawn = TypeVar("Drawn")


@dataclass(frozen=True, eq=False)
class DigitPictures:
    """Pictures of digits, from -1 (paper) to 1 (ink), sorted by what they show."""

    pictures: Float[Tensor, "n 8 8"]
    labels: Int[Tensor, " n"]


@dataclass(frozen=True, eq=False)
class SceneBatch:
    """What a step learns from: the pictures as they are, noisy, and how noisy: time 0 is noise alone, 1 the picture.

    counted: 0 where the rows were made up for a process for which none was left.
    """

    words: Int[Tensor, "n L"]
    pictures: Float[Tensor, "n R R"]
    noisy: Float[Tensor, "n R R"]
    time: Float[Tensor, " n"]
    counted: int = 1

    @property
    def tokens(self) -> int:
        """Count what has a loss: pixels."""
        return self.counted * self.pictures.numel()

    def part(self, rank: int, of: int) -> "SceneBatch":
        """Take the rows of one of several processes."""
        rows = slice(rank, None, of) if rank < len(self.words) else slice(0, 1)
        words, pictures, noisy, time = (each[rows] for each in (self.words, self.pictures, self.noisy, self.time))
        return SceneBatch(words, pictures, noisy, time, self.counted * (rank < len(self.words)))

    def loss(self, model: Any, smoothing: float) -> Float[Tensor, ""]:
        """Sum the squared errors of the pictures that the model expects behind the noise."""
        device = next(model.parameters()).device
        words, pictures, noisy, time = (each.to(device) for each in (self.words, self.pictures, self.noisy, self.time))
        return self.counted * ((model(noisy, time, words).float() - pictures) ** 2).sum()


class DrawnScenes(ABC, Generic[Drawn]):
    """Batches without end, each drawn from the seed and its place; those that validate are of digits held out."""

    def __init__(self, *, batch: int, seed: int) -> None:
        self.size, self.seed = batch, seed
        self.trained, self.held = read_digits()

    def batch(self, place: tuple[int, int]) -> tuple[Drawn, tuple[int, int]]:
        """Draw scenes that follow from the seed and the place, (0, number of the batch)."""
        drawn = torch.Generator().manual_seed(self.seed * 1_000_003 + place[1])
        return self._batch(self.trained, drawn), (0, place[1] + 1)

    def validation(self, most: int | None = None) -> Iterator[Drawn]:
        """Yield scenes of digits held out, always the same."""
        drawn = torch.Generator().manual_seed(0)
        for _ in range(VALIDATED if most is None else min(most, VALIDATED)):
            yield self._batch(self.held, drawn)

    @property
    def pixels(self) -> bytes:
        """All digits, by which a run knows them again."""
        return b"".join(digits.pictures.numpy().tobytes() for digits in (self.trained, self.held))

    @abstractmethod
    def _batch(self, digits: DigitPictures, drawn: torch.Generator) -> Drawn: ...


class Scenes(DrawnScenes[SceneBatch]):
    """Scenes to paint: lines of words, and their pictures."""

    def drawn(self, digits: DigitPictures, drawn: torch.Generator) -> tuple[Int[Tensor, "n L"], Float[Tensor, "n R R"]]:
        """Draw lines, as ids of words, and their pictures of these digits."""
        wanted, corners = draw_scenes(self.size, drawn)
        return scene_ids(wanted, corners), scene_pictures(digits, wanted, corners, drawn)

    def _batch(self, digits: DigitPictures, drawn: torch.Generator) -> SceneBatch:
        words, pictures = self.drawn(digits, drawn)
        time = torch.sigmoid(torch.randn(self.size, generator=drawn) - 0.8)  # more of noisy ones, where words decide
        noise = torch.randn(pictures.shape, generator=drawn)
        noisy = torch.lerp(noise, pictures, time[:, None, None])
        return SceneBatch(words, pictures, noisy, time)


def read_digits() -> tuple[DigitPictures, DigitPictures]:
    """Read scikit-learn's digits: those that are painted from, and those held out; the same at every call.

    Raises:
        RegardError: scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise RegardError(f'scikit-learn is not installed ({error}): pip install "regard[painter]"') from error
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    pictures = (torch.tensor(data.images, dtype=torch.float32) / 8 - 1)[order]  # of 0 to 16
    labels = torch.tensor(data.target)[order]
    return _sorted(pictures[:TRAINED], labels[:TRAINED]), _sorted(pictures[TRAINED:], labels[TRAINED:])


def draw_scenes(
    count: int, drawn: torch.Generator, *, different: bool = False
) -> tuple[Int[Tensor, "n 2"], Int[Tensor, "n 2"]]:
    """Draw which two digits, and in which two of the four corners.

    different: whether the two digits always are, so that exchanging them shows.
    """
    corners = torch.rand(count, 4, generator=drawn).argsort(-1)[:, :2]
    digits = torch.randint(10, (count, 2), generator=drawn)
    if different:
        digits[:, 1] = (digits[:, 0] + torch.randint(1, 10, (count,), generator=drawn)) % 10
    return digits, corners


def draw_digits(
    digits: DigitPictures, wanted: Int[Tensor, "*many"], drawn: torch.Generator
) -> Float[Tensor, "*many 8 8"]:
    """Draw a picture of each wanted digit, from all of its kind."""
    many = torch.bincount(digits.labels, minlength=10)
    first = many.cumsum(0) - many
    return digits.pictures[first[wanted] + (torch.rand(wanted.shape, generator=drawn) * many[wanted]).long()]


def scene_pictures(
    digits: DigitPictures, wanted: Int[Tensor, "n k"], corners: Int[Tensor, "n k"], drawn: torch.Generator
) -> Float[Tensor, "n R R"]:
    """Put pictures of the wanted digits, each drawn from all of its kind, into their corners."""
    cells = torch.full((len(wanted), 2, 2, CELL, CELL), PAPER)
    rows = torch.arange(len(wanted))[:, None]
    cells[rows, corners // 2, corners % 2] = draw_digits(digits, wanted, drawn)
    return cells.transpose(2, 3).reshape(len(wanted), SIDE, SIDE)


def scene_ids(digits: Int[Tensor, "n 2"], corners: Int[Tensor, "n 2"]) -> Int[Tensor, "n L"]:
    """Spell scenes as ids of words."""
    ids = torch.zeros(len(digits), LENGTH, dtype=torch.long)
    ids[:, 5] = NUMBER[COMMA]
    for slot, at in enumerate(DIGIT_PLACES):
        ids[:, at - 1] = NUMBER[ARTICLE]
        ids[:, at] = NUMBER[DIGITS[0]] + digits[:, slot]
        ids[:, at + 1] = NUMBER[ROWS[0]] + corners[:, slot] // 2
        ids[:, at + 2] = NUMBER[COLUMNS[0]] + corners[:, slot] % 2
    return ids


def scene_of(digits: Int[Tensor, " 2"], corners: Int[Tensor, " 2"]) -> Scene:
    """Name one drawn scene."""
    (first, second), (one, other) = digits.tolist(), corners.tolist()
    return Scene((first, second), (one, other))


def _sorted(pictures: Tensor, labels: Tensor) -> DigitPictures:
    order = labels.argsort(stable=True)
    return DigitPictures(pictures[order], labels[order])
