"""Is what a painter paints what the words say, and do its weights say which word painted it? Measured, not looked at.

Whether a digit is right is told by a judge that never saw the painter's digits: a support vector machine (Cortes and
Vapnik 1995) trained on those held out. Heat is a word's weights from the patches, the mean of steps, layers and heads.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.nn.painter import Painter, patches
from regard.nn.painting import paint
from regard.train.scene_words import DIGIT_PLACES, LENGTH, PHRASES
from regard.train.scenes import CELL, SIDE, DigitPictures, draw_scenes, read_digits, scene_ids

CORNERS = 4
INK, SPOTS = -0.25, 2  # a pixel from which on it is ink, and how many of them an empty corner may have


@dataclass(frozen=True)
class PainterMeasures:
    """Shares from 0 to 1, over scenes of two different digits.

    judge: of the painter's own digits, those that the judge names right: no painting can be told better.
    right: digits that are right, in their corner. whole: scenes with both right and the other corners empty.
    pointing: digit words whose largest heat is in their corner; 0.25 by chance. inside: a digit word's heat in its
        corner, of all its heat.
    swapped: digits that change places when the two words' keys are exchanged; kept: that stay.
    phrases: digits that change places when the keys of the two phrases are exchanged, articles and places too.
    cut: digits still right without any edge to their word; 0.1 by chance. other: of the same scenes, the other digits.
    """

    judge: float
    right: float
    whole: float
    pointing: float
    inside: float
    swapped: float
    kept: float
    phrases: float
    cut: float
    other: float


class DigitJudge:
    """Names the digit in a corner; trained on digits that no painter saw."""

    def __init__(self, digits: DigitPictures) -> None:
        from sklearn.svm import SVC

        self._machine: Any = SVC(gamma=0.05, C=10).fit(digits.pictures.flatten(1).numpy(), digits.labels.numpy())

    def named(self, pictures: Float[Tensor, "*many pixels"]) -> Int[Tensor, "*many"]:
        """Name pictures of 8 × 8 pixels."""
        flat = pictures.clamp(-1, 1).reshape(-1, CELL * CELL).cpu().numpy()
        return torch.as_tensor(self._machine.predict(flat)).view(pictures.shape[:-1])

    def right(self, digits: DigitPictures) -> float:
        """Tell which share of real digits it names as their labels do."""
        return share(self.named(digits.pictures.flatten(1)) == digits.labels)


def measure_painter(model: Painter, scenes: int = 200, seed: int = 7) -> PainterMeasures:
    """Paint scenes as they are, with keys exchanged and with edges cut, and count.

    Raises:
        RegardError: scikit-learn is not installed.
    """
    trained, held = read_digits()
    judge, drawn = DigitJudge(held), torch.Generator().manual_seed(seed)
    wanted, corners = draw_scenes(scenes, drawn, different=True)
    words, noise = scene_ids(wanted, corners), torch.randn(scenes, SIDE, SIDE, generator=drawn)

    def named(pictures: Tensor) -> Tensor:  # (n, 2): what stands where a digit was asked for
        return judge.named(patches(pictures, 2)[torch.arange(scenes)[:, None], corners])

    painted = paint(model, words, noise)
    swapped = named(paint(model, words, noise, keys=exchanged_words()).pictures)
    phrases = named(paint(model, words, noise, keys=exchanged_phrases()).pictures)
    cut = [named(paint(model, words, noise, may=all_words_but(at)).pictures) == wanted for at in DIGIT_PLACES]
    right = named(painted.pictures) == wanted
    maps = painted.heat[..., list(DIGIT_PLACES)].mT  # (n, 2, P)
    corner = corner_of_patches(model.config.grid)
    inside = corner == corners[..., None]
    ink = (patches(painted.pictures, 2) > INK).sum(-1)  # (n, 4)
    empty = torch.ones(scenes, CORNERS, dtype=torch.bool).scatter(1, corners, False)
    return PainterMeasures(
        judge=judge.right(trained),
        right=share(right),
        whole=share(right.all(-1) & ((ink <= SPOTS) | ~empty).all(-1)),
        pointing=share(corner[maps.argmax(-1)] == corners),
        inside=float(((maps * inside).sum(-1) / maps.sum(-1)).mean()),
        swapped=share(swapped == wanted.flip(1)),
        kept=share(swapped == wanted),
        phrases=share(phrases == wanted.flip(1)),
        cut=share(torch.stack([cut[0][:, 0], cut[1][:, 1]])),
        other=share(torch.stack([cut[0][:, 1], cut[1][:, 0]])),
    )


def exchanged_words(*both: tuple[int, ...]) -> Int[Tensor, " L"]:
    """Whose key each word has when those of the words at two places, or at two rows of them, are exchanged.

    both: by default the digits' places.
    """
    ours, theirs = both or ([DIGIT_PLACES[0]], [DIGIT_PLACES[1]])
    keys = torch.arange(LENGTH)
    keys[[*ours, *theirs]] = torch.tensor([*theirs, *ours])
    return keys


def exchanged_phrases() -> Int[Tensor, " L"]:
    """Whose key each word has when the two phrases' are exchanged."""
    return exchanged_words(*PHRASES)


def all_words_but(*places: int) -> Bool[Tensor, " L"]:
    """Which words may be attended to when the edges to some are cut."""
    may = torch.ones(LENGTH, dtype=torch.bool)
    may[list(places)] = False
    return may


def corner_of_patches(grid: int) -> Int[Tensor, " P"]:
    """In which corner each patch is."""
    patch, half = torch.arange(grid**2), grid // 2
    return patch // grid // half * 2 + patch % grid // half


def share(found: Bool[Tensor, "..."]) -> float:
    """Tell which share of them is true."""
    return float(found.double().mean())
