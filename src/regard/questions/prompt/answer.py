"""Tell where the picture that a pipeline of diffusers painted looks at each word of its text."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.diffusion.heat import PromptHeat
from regard.diffusion.pipeline import PaintedText, Pipeline
from regard.diffusion.prompt import PromptWord
from regard.display.answer import Answer, Read
from regard.display.panels import Cell, Column, Heat, Over, Panel, Table, numbered
from regard.explain.frames import Row
from regard.explain.wording import listed, number
from regard.text.quoting import quoted
from regard.text.word_pieces import wordlike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMED = 3  # words that sentences name
DRAWN = 6  # words that a picture has room for
PICTURE, SMALL = "Picture", 64  # the panel of the picture itself, and the most pixels of its sides


@dataclass(frozen=True)
class HeatPeak:
    """Where on the first picture a word's heat is largest: its row and column, what it is there and on average."""

    row: int
    column: int
    weight: float
    mean: float

    @property
    def times(self) -> float:
        """How many times its average it is there."""
        return self.weight / self.mean if self.mean > 0 else 1.0


@dataclass(frozen=True, eq=False, repr=False)
class PromptPainting(Answer):
    """Pictures that were painted of a text, and the heat of its words. model: who painted; settings: with what."""

    format: ClassVar[str] = "regard paint prompt"

    painted_as: PaintedText
    model: str
    settings: str

    @property
    def heat(self) -> PromptHeat:
        """The weights from the pictures to the words."""
        return self.painted_as.heat

    @property
    def words(self) -> list[PromptWord]:
        """List the words that are no signs, those whose heat rises highest above its mean first."""
        own = [word for word in self.heat.prompt.words if not word.special and wordlike(word.name)]
        return sorted(own, key=lambda word: -self.peak(word).times)

    def peak(self, word: PromptWord) -> HeatPeak:
        """Find where the first picture looks at a word most: the mean of all steps, layers and heads."""
        heat = self.heat.of(word)[0]
        row, column = divmod(int(heat.argmax()), heat.shape[1])
        return HeatPeak(row, column, float(heat.max()), float(heat.mean()))

    def title(self) -> str:
        """What was painted, and by whom."""
        return f"{quoted(self.heat.prompt.text)}, painted by {self.model}"

    def findings(self) -> list[str]:
        """Say where the words that stand out are looked at, and what an average place gives to what."""
        rows, columns = self.heat.grid
        said = []
        for word in self.words[:NAMED]:
            peak = self.peak(word)
            said.append(
                f"{quoted(word.name)} is looked at most at place {peak.row},{peak.column} of {rows} × {columns}, which "
                f"gives it {number(peak.weight)} of its weight: {number(peak.times)} times what an average place does."
            )
        return [*said, self._spent()]

    def _spent(self) -> str:
        """How an average place splits its weight."""
        named = [(quoted(word.name), self._mean(list(word.tokens))) for word in self.heat.prompt.words if word.special]
        own = [n for word in self.heat.prompt.words if not word.special for n in word.tokens]
        parts = [("the text's own words", self._mean(own)), *named]
        padding = len(self.heat.prompt.padding)
        if padding:
            parts.append((f"padding ({padding} tokens that stand for nothing)", self._mean([-1])))
        rest = 1 - sum(weight for _, weight in parts)
        if rest > 1e-4:
            parts.append(("the picture itself", rest))
        given = listed([f"{number(weight)} to {name}" for name, weight in parts])
        return f"An average place gives {given}."

    def _mean(self, tokens: list[int]) -> float:
        return float(self.heat.mean(tokens)[0].mean())

    def exactness(self) -> list[str]:
        """Say what was recorded, and what heat does not say."""
        said = [
            f"painted with {self.settings}; weights of {len(self.heat.weights)} steps and {len(self.heat.layers)} "
            "layers, as the pipeline computed with them; a mean lays coarse grids on the finest",
            "heat says where the picture looks at a word, not that the word is why something stands there",
            *self.painted_as.notes,
        ]
        if self.heat.guided:
            said.append("the picture was guided: what ran beside it without the words is not shown")
        if self.heat.beside:
            said.append(f"{len(self.heat.beside)} layers look at a picture that was given, too: that is not shown")
        if self.heat.others:
            said.append(f"{len(self.heat.others)} more attention modules have no words among their keys, or not alone")
        return said

    def rows(self) -> list[Row]:
        """List one row a picture, word and place of the finest grid: its heat, the mean of steps, layers and heads."""
        return [
            {"picture": n, "word": word.name, "row": row, "column": column, "weight": weight}
            for word in self.heat.prompt.words
            for n, heat in enumerate(self.heat.of(word).tolist())
            for row, line in enumerate(heat)
            for column, weight in enumerate(line)
        ]

    def panels(self) -> list[Panel]:
        """Show where each word is looked at, its heat over the steps, and which layer looks at which word."""
        steps = [self._steps(word) for word in self.words]
        most = max((float(each.max()) for each in steps), default=0.0)  # of all, so that words can be compared
        heats = [self._heat(n, word, steps[n], most) for n, word in enumerate(self.words)]
        return [self._table(), *heats, self._picture(), self._layers()]

    def _picture(self) -> Heat:
        """The first picture, small and grey: what the page lays heat on."""
        small = self.painted_as.pictures[0].convert("L")
        small.thumbnail((SMALL, SMALL))
        ink = [[round(1 - pixel / 255, 3) for pixel in line] for line in np.asarray(small).tolist()]
        return Heat(
            name=PICTURE, under=PICTURE, title="The first picture, in grey", values=ink, unit="darkness",
            rows=numbered(small.height), columns=numbered(small.width), axes=("row", "column"),
            largest=1.0, note=f"Made smaller, to {small.width} × {small.height}",
        )  # fmt: skip

    def _table(self) -> Table:
        rows: list[list[Cell]] = []
        for word in self.words:
            peak = self.peak(word)
            rows.append([word.name, peak.mean, peak.weight, f"{peak.row},{peak.column}", peak.times])
        columns = [
            Column("word"),
            Column("mean", 2),
            Column("most", 2, bar=True),
            Column("at"),
            Column("times mean", 1),
        ]
        return Table(
            name="Words", title="Where each word is looked at most", columns=columns, rows=rows, screen=True,
            note="The first picture; a place is row,column of the finest grid, from 0 at the top left. Weights are the "
            "mean of steps, layers and heads.",
        )  # fmt: skip

    def _steps(self, word: PromptWord) -> Float[Tensor, "steps rows columns"]:
        """The heat of a word on the first picture at every step, and last the mean of all."""
        every = [self.heat.of(word, step=step)[0] for step in range(len(self.heat.weights))]
        return torch.stack([*every, self.heat.of(word)[0]])

    def _heat(self, n: int, word: PromptWord, values: Float[Tensor, "steps rows columns"], most: float) -> Heat:
        rows, columns = self.heat.grid
        titles = [
            f"{word.name}: {when}" for when in (*(f"step {n}" for n in range(len(values) - 1)), "mean of all steps")
        ]
        return Heat(
            name=f"Heat of {word.name}", title=word.name, rows=numbered(rows), columns=numbered(columns),
            values=values[-1].tolist(), axes=("row", "column"),
            unit="weight", picture=n < DRAWN, group="Heat", tab="Heat", under=PICTURE,
            largest=most,
            over=Over(titles, values.tolist()),
            note="The mean of layers and heads, as the places lie on the picture",
        )  # fmt: skip

    def _layers(self) -> Heat:
        parts = [(word.name, list(word.tokens)) for word in self.heat.prompt.words] + [("padding", [-1])]
        values = [
            [float(self.heat.mean(tokens, layer=layer)[0].mean()) for _, tokens in parts]
            for layer in range(len(self.heat.layers))
        ]
        return Heat(
            name="Layers", title="What an average place gives, layer by layer", values=values, unit="weight",
            rows=[f"{n} {each.path}" for n, each in enumerate(self.heat.layers)],
            columns=[name for name, _ in parts], axes=("layer", "word"),
            note="The mean of steps and heads",
        )  # fmt: skip

    def painted(self) -> "tuple[Figure, list[str]]":
        """Draw the first picture as it is, and grey under the heat of the words that stand out."""
        from regard.questions.prompt.picture import draw_prompt

        return draw_prompt(self, DRAWN), []


def prompt_painting(
    pipeline: Pipeline, text: str, *, steps: int = 20, samples: int = 1, seed: int = 0, **options: object
) -> PromptPainting:
    """Let a pipeline paint a text, and find where the picture looks at each word."""
    found = pipeline.paint(text, steps=steps, samples=samples, seed=seed, heads=False, **options)
    named = "".join(f", {name} {value}" for name, value in options.items())
    settings = f"{steps} steps, seed {seed}{named}"
    return PromptPainting(found, pipeline.name, settings, about=Read(((found.heat.prompt.text, None),)))
