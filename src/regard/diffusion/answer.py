"""Show where an image that a diffusers pipeline generated attends to each word of its prompt."""

from dataclasses import dataclass
from typing import Any, ClassVar

import matplotlib
import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from regard.diffusion.pipeline import PaintedText, Pipeline
from regard.diffusion.prompt import PromptHeat, PromptWord
from regard.display.answer import Answer, Read
from regard.display.canvas import STYLE, empty_figure
from regard.display.heatmap import heat_over_picture
from regard.display.panels import Cell, Column, Heat, Over, Panel, Table, numbered
from regard.display.sentences import Template, sentences
from regard.explain.frames import Row
from regard.explain.wording import fixed, listed
from regard.text.quoting import quoted
from regard.text.words import wordlike

DRAWN, ACROSS = 6, 4  # words in a figure at most, and images per row
PICTURE, SMALL = "Picture", 64  # the image's panel, and the most pixels per side
MEANS = "Mean weights: {text} for the words, {special} for special tokens"
TABLE: list[list[Template]] = [
    [("The attention to {top} is the most concentrated: weight {weight} at row {row}, column {column}, "
      "{top_times:n}× its mean over the image.", None)],
    [("The attention to {last} is the most even: its maximum is {last_times:n}× its mean over the image.",
      lambda n: n["words"] > 1)],
    [(f"{MEANS}, {{padding}} for padding, {{image}} for the image itself.", None),
     (f"{MEANS}, {{image}} for the image itself.", None), (f"{MEANS}, {{padding}} for padding.", None),
     (f"{MEANS}.", None)],
]  # fmt: skip


@dataclass(frozen=True)
class HeatPeak:
    """The maximum of a word's heat map on the first image: row, column, weight, and the map's mean."""

    row: int
    column: int
    weight: float
    mean: float

    @property
    def times(self) -> float:
        """Return the maximum divided by the mean."""
        return self.weight / self.mean if self.mean > 0 else 1.0


@dataclass(frozen=True, eq=False, repr=False)
class PromptPainting(Answer):
    """The answer of `regard paint`: images of a prompt, with a heat map per word."""

    format: ClassVar[str] = "regard paint prompt"

    painted_as: PaintedText
    model: str
    settings: str

    @property
    def heat(self) -> PromptHeat:
        """Return the attention weights from the images to the words."""
        return self.painted_as.heat

    @property
    def words(self) -> list[PromptWord]:
        """Return the words without punctuation, the most concentrated heat map first."""
        own = [word for word in self.heat.prompt.words if not word.special and wordlike(word.name)]
        return sorted(own, key=lambda word: -self.peak(word).times)

    def peak(self, word: PromptWord) -> HeatPeak:
        """Return the maximum of a word's heat map on the first image, the mean of steps, layers and heads."""
        heat = self.heat.of(word)[0]
        row, column = divmod(int(heat.argmax()), heat.shape[1])
        return HeatPeak(row, column, float(heat.max()), float(heat.mean()))

    def title(self) -> str:
        """Return the title: the prompt and the pipeline."""
        return f"{quoted(self.heat.prompt.text)}, painted by {self.model}"

    def findings(self) -> list[str]:
        """Write which words have the most and least concentrated attention, and the mean weights."""
        numbers: dict[str, Any] = {"words": len(self.words), "padding": None, "image": None}
        for name, word in zip(("top", "last"), (*self.words[:1], *self.words[-1:]), strict=False):
            peak = self.peak(word)
            numbers |= {name: quoted(word.name), f"{name}_times": peak.times}
            numbers |= {"weight": peak.weight, "row": peak.row, "column": peak.column} if name == "top" else {}
        words = self.heat.prompt.words
        for name, special in (("text", False), ("special", True)):
            numbers[name] = self._mean_weight([n for word in words if word.special == special for n in word.tokens])
        if self.heat.prompt.padding:
            numbers["padding"] = self._mean_weight([-1])
        rest = 1 - numbers["text"] - numbers["special"] - (numbers["padding"] or 0)
        return sentences(TABLE, numbers | ({"image": rest} if rest > 1e-4 else {}))

    def _mean_weight(self, tokens: list[int]) -> float:
        return float(self.heat.mean(tokens)[0].mean()) if tokens else 0.0

    def exactness(self) -> list[str]:
        """Return the generation settings, the pipeline's notes, and what isn't shown."""
        weights, layers = len(self.heat.weights), len(self.heat.layers)
        lines = [
            f"Painted with {self.settings}. Weights are the pipeline's own, from {weights} steps and {layers} layers."
        ]
        left_out = [
            *["the guidance pass without the text"] * self.heat.guided,
            *[f"{len(self.heat.beside)} layers' attention to a given image"] * bool(self.heat.beside),
            *[f"{len(self.heat.others)} attention modules without words among their keys"] * bool(self.heat.others),
        ]
        return [*lines, *self.painted_as.notes, *[f"Not shown: {listed(left_out)}."] * bool(left_out)]

    def rows(self) -> list[Row]:
        """Return a row per image, word and position of the finest grid, with the mean weight."""
        return [
            {"picture": n, "word": word.name, "row": row, "column": column, "weight": weight}
            for word in self.heat.prompt.words
            for n, heat in enumerate(self.heat.of(word).tolist())
            for row, line in enumerate(heat)
            for column, weight in enumerate(line)
        ]

    def panels(self) -> list[Panel]:
        """Return the table of words, the heat maps over the steps, the image, and a map by layer."""
        steps = [self._heat_by_step(word) for word in self.words]
        most = max((float(step.max()) for step in steps), default=0.0)  # a common scale, to compare words
        heats = [self._heat_panel(n, word, steps[n], most) for n, word in enumerate(self.words)]
        return [self._table_of_words(), *heats, self._image_panel(), self._heat_by_layer()]

    def _image_panel(self) -> Heat:
        """Return the first image as a small grey panel, on which a page draws heat maps."""
        small = self.painted_as.pictures[0].convert("L")
        small.thumbnail((SMALL, SMALL))
        ink = [[round(1 - pixel / 255, 3) for pixel in line] for line in np.asarray(small).tolist()]
        return Heat(
            name=PICTURE, under=PICTURE, title="First image, in grey", values=ink, unit="darkness",
            rows=numbered(small.height), columns=numbered(small.width), axes=("row", "column"),
            largest=1.0, note=f"Reduced to {small.width} × {small.height} pixels.",
        )  # fmt: skip

    def _table_of_words(self) -> Table:
        high, wide = self.heat.grid
        rows: list[list[Cell]] = []
        for word in self.words:
            peak = self.peak(word)
            rows.append([word.name, peak.mean, peak.weight, f"{peak.row},{peak.column}", peak.times])
        columns = [Column("word"), Column("mean", 2), Column("maximum", 2, bar=True), Column("at")]
        columns.append(Column("× mean", 2, unbounded=True))
        return Table(
            name="Words", title="Attention from the first image to each word, mean of steps, layers and heads",
            columns=columns, rows=rows, screen=True,
            note=f"“At” is the row and column of the maximum in a grid of {high} × {wide}, from 0 at the top left.",
        )  # fmt: skip

    def _heat_by_step(self, word: PromptWord) -> Float[Tensor, "steps rows columns"]:
        """Return a word's heat maps on the first image: one per step, then the mean of all steps."""
        by_step = [self.heat.of(word, step=step)[0] for step in range(len(self.heat.weights))]
        return torch.stack([*by_step, self.heat.of(word)[0]])

    def _heat_panel(self, n: int, word: PromptWord, values: Float[Tensor, "steps rows columns"], most: float) -> Heat:
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
            note="Mean of layers and heads.",
        )  # fmt: skip

    def _heat_by_layer(self) -> Heat:
        columns = [(word.name, list(word.tokens)) for word in self.heat.prompt.words] + [("padding", [-1])]
        values = [
            [float(self.heat.mean(tokens, layer=layer)[0].mean()) for _, tokens in columns]
            for layer in range(len(self.heat.layers))
        ]
        return Heat(
            name="Layers", title="Mean attention from the image to each word, by layer", values=values, unit="weight",
            rows=[f"{n} {each.path}" for n, each in enumerate(self.heat.layers)],
            columns=[name for name, _ in columns], axes=("layer", "word"),
            note="Mean of steps and heads.",
        )  # fmt: skip

    def painted(self) -> tuple[Figure, list[str]]:
        """Return the figure of the first image and its heat maps."""
        return draw_prompt(self, DRAWN), []


def prompt_painting(
    pipeline: Pipeline, text: str, *, steps: int = 20, samples: int = 1, seed: int = 0, **options: object
) -> PromptPainting:
    """Generate images of a prompt with a pipeline, and return each word's heat maps as an answer."""
    painted = pipeline.paint(text, steps=steps, samples=samples, seed=seed, heads=False, **options)
    named = "".join(f", {name} {value}" for name, value in options.items())
    settings = f"{steps} steps, seed {seed}{named}"
    return PromptPainting(painted, pipeline.name, settings, about=Read(((painted.heat.prompt.text, None),)))


@matplotlib.rc_context(STYLE)
def draw_prompt(found: PromptPainting, most: int) -> Figure:
    """Draw the first image, and copies of it under the heat maps of the `most` most concentrated words."""
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
