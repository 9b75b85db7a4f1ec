"""Paint a line of words several times: what is where, where each word's heat is, and what exchanging and cutting do.

Heat is a word's weights from the patches of the picture: where it is looked at. Whether that is why a digit stands
there is tried: the keys of the two digits' words, and of their phrases, are exchanged, and the edges to either cut.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from regard.display.answer import Answer
from regard.display.panels import TALL
from regard.explain.frames import Row
from regard.explain.wording import number
from regard.nn.painter import Painter, patches
from regard.nn.painting import Painted, paint
from regard.questions.paint import panels, sentences
from regard.text.quoting import quoted
from regard.train.painter_measures import (
    DigitJudge,
    all_words_but,
    corner_of_patches,
    exchanged_phrases,
    exchanged_words,
)
from regard.train.scene_words import DIGIT_PLACES, Scene
from regard.train.scenes import SIDE, read_digits, scene_ids

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Trial:
    """The line painted from the same noise, as it is or with something changed.

    digits: (n, 2), what a judge reads in the two corners that the line names, each as often as the line was painted.
    """

    name: str
    painted: Painted
    digits: Int[Tensor, "n 2"]

    def count(self, digits: tuple[int, int]) -> tuple[int, int]:
        """Count in how many pictures each of the two corners has this digit."""
        first, second = (self.digits == torch.tensor(digits)).sum(0).tolist()
        return first, second


@dataclass(frozen=True, eq=False, repr=False)
class Painting(Answer):
    """A line that was painted.

    values: what the painter's cross-attention carries. trials: as written comes first. judge: the share of the other
    real digits, not those that it learned from, that who reads the digits names right.
    """

    format: ClassVar[str] = "regard paint"
    findings = sentences.of_painting
    panels = panels.of_painting

    scene: Scene
    values: str
    trials: tuple[Trial, ...]
    judge: float

    @property
    def written(self) -> Painted:
        """The line as it is written."""
        return self.trials[0].painted

    @property
    def samples(self) -> int:
        """How often it was painted."""
        return len(self.written.pictures)

    def pointing(self, place: int) -> Int[Tensor, " n"]:
        """Tell the corner of a word's largest heat in each picture."""
        heat = self.written.heat[..., place]
        return corner_of_patches(round(heat.shape[1] ** 0.5))[heat.argmax(-1)]

    def shares(self, place: int) -> list[float]:
        """Split a word's heat among the four corners; the mean of all pictures."""
        heat = self.written.heat[..., place]
        corner = corner_of_patches(round(heat.shape[1] ** 0.5))
        split = torch.stack([heat[:, corner == each].sum(-1) for each in range(4)], -1)  # (n, 4)
        return (split / split.sum(-1, keepdim=True)).mean(0).tolist()

    def title(self) -> str:
        """What is painted."""
        return f"{quoted(self.scene.text)}, painted {self.samples} times"

    def painted(self, shape: str) -> "tuple[Figure, list[str]]":
        """Draw its pictures, and one of them under the heat of each word; it fits a slide as it is."""
        from regard.questions.paint.picture.heat import draw_heat

        return draw_heat(self), []

    def draw(self, file: Path, shape: str = TALL) -> list[str]:
        """Write its picture, or (.gif) a film of the steps; returns notes on what it could not show."""
        from regard.questions.paint.picture.heat import film

        return film(self, file) if file.suffix.lower() == ".gif" else super().draw(file, shape)

    def rows(self) -> list[Row]:
        """One row a word, step, layer and patch of the first picture: its weight, the mean of heads."""
        weights = self.written.weights[:, :, 0].mean(2)  # (steps, N, P, L)
        grid = round(weights.shape[2] ** 0.5)
        return [
            {"place": place, "word": word, "step": step, "layer": layer, "row": patch // grid, "column": patch % grid,
             "weight": weight}
            for step, of_layers in enumerate(weights.tolist())
            for layer, of_patches in enumerate(of_layers)
            for patch, row in enumerate(of_patches)
            for place, (word, weight) in enumerate(zip(self.scene.words, row, strict=True))
        ]  # fmt: skip

    def data(self) -> dict[str, object]:
        """The words, what each trial painted and what is read there, and the heat of every word."""
        trials = [
            {"name": each.name, "pictures": each.painted.pictures.tolist(), "digits": each.digits.tolist()}
            for each in self.trials
        ]
        heat = self.written.heat.mT.tolist()
        return {"words": self.scene.words, "values": self.values, "trials": trials, "heat": heat}

    def exactness(self) -> list[str]:
        """Say who reads the digits, and how well."""
        read = "digits are read by a classifier of scikit-learn's held-out digits"
        return [f"{read}, which names {number(100 * self.judge)} % of the other real ones right"]


def painting(model: Painter, scene: Scene, *, samples: int = 8, seed: int = 0) -> Painting:
    """Paint a line from so many noises, as it is and changed, each time from the same ones.

    Raises:
        RegardError: scikit-learn is not installed, by which digits are read.
    """
    trained, held = read_digits()
    judge = DigitJudge(held)
    digits, corners = (torch.tensor([each] * samples) for each in (scene.digits, scene.corners))
    words = scene_ids(digits, corners).to(model.device)
    noise = torch.randn(samples, SIDE, SIDE, generator=torch.Generator().manual_seed(seed)).to(model.device)

    def trial(name: str, keys: Tensor | None = None, may: Tensor | None = None) -> Trial:
        painted = paint(model, words, noise, keys=keys, may=may)
        return Trial(name, painted, judge.named(patches(painted.pictures, 2)[:, list(scene.corners)]))

    first, second = names = [quoted(scene.words[at]) for at in DIGIT_PLACES]
    trials = [
        trial("as written"),
        trial(f"keys of {first} and {second} exchanged", keys=exchanged_words()),
        trial("keys of both phrases exchanged", keys=exchanged_phrases()),
        *(trial(f"edges to {name} cut", may=all_words_but(at)) for name, at in zip(names, DIGIT_PLACES, strict=True)),
    ]
    return Painting(scene, model.config.values, tuple(trials), judge.right(trained))
