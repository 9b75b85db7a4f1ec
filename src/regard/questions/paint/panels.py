"""Make the panels of a painted line: what changed with what, words and corners, pictures, and heat over the steps."""

from typing import TYPE_CHECKING

from torch import Tensor

from regard.display.panels import Cell, Column, Heat, Over, Panel, Table, numbered
from regard.explain.wording import capital
from regard.questions.paint.sentences import corner_name
from regard.train.scene_words import DIGIT_PLACES, DIGITS
from regard.train.scenes import SIDE

if TYPE_CHECKING:
    from regard.questions.paint.answer import Painting


def of_painting(found: "Painting") -> list[Panel]:
    """Pictures, then the heat of every word, then two tables for the screen."""
    return [*_pictures(found), *_heat(found), *_layers(found), _trials(found), _words(found)]


def _trials(found: "Painting") -> Table:
    rows: list[list[Cell]] = [[each.name, *(_read(each.digits[:, slot]) for slot in range(2))] for each in found.trials]
    columns = [Column("painted"), *(Column(corner_name(corner)) for corner in found.scene.corners)]
    return Table(
        name="Trials", title="What stands in the two corners", columns=columns, rows=rows, screen=True,
        note=f"Of {found.samples} pictures, from the same noise in every row",
    )  # fmt: skip


def _read(digits: Tensor) -> str:
    """The digits of a corner, the most frequent first, with their counts."""
    counts = digits.bincount(minlength=10).tolist()
    order = sorted((digit for digit in range(10) if counts[digit]), key=lambda digit: -counts[digit])
    return ", ".join(f"{DIGITS[digit]} {counts[digit]}" for digit in order)


def _words(found: "Painting") -> Table:
    rows: list[list[Cell]] = [[str(place), word, *found.shares(place)] for place, word in enumerate(found.scene.words)]
    columns = [Column("place"), Column("word"), *(Column(corner_name(each), 2) for each in range(4))]
    return Table(
        name="Corners", title="Where each word is looked at", columns=columns, rows=rows, screen=True,
        note="A word's weights from the patches of each corner, as shares of all it gets; the mean of the pictures, "
        "steps, layers and heads",
    )  # fmt: skip


def _pictures(found: "Painting") -> list[Panel]:
    """The first picture of every trial; that as written at every step, as it was then expected."""
    made: list[Panel] = []
    for trial in found.trials:
        steps = [_ink(each) for each in trial.painted.expected[:, 0]]
        name = capital(trial.name)
        heat = Heat(
            name=name, under=name, title=trial.name, rows=numbered(SIDE), columns=numbered(SIDE), values=steps[-1],
            axes=("row", "column"), unit="ink", largest=1.0, digits=2, group="Painted", tab="Pictures",
            over=Over([f"{name}: expected at step {n}" for n in range(len(steps))], steps),
            note="The first picture; ink from 0 to 1",
        )  # fmt: skip
        made.append(heat)
    return made


def _heat(found: "Painting") -> list[Panel]:
    """The heat of each word on the first picture, step by step: the mean of layers and heads."""
    weights = found.written.weights[:, :, 0].mean((1, 2))  # (steps, P, L)
    most, note = float(weights.max()), "The mean of layers and heads"
    return [
        _map(found, weights[..., place], most, f"Heat of {place} {word}", word, "Heat", note, opens=place == 1)
        for place, word in enumerate(found.scene.words)
    ]


def _layers(found: "Painting") -> list[Panel]:
    """The heat of the two digits' words, layer by layer: the mean of heads."""
    weights = found.written.weights[:, :, 0].mean(2)  # (steps, N, P, L)
    most = float(weights[..., DIGIT_PLACES].max())
    return [
        _map(found, weights[:, layer, :, place], most, f"Heat of {place} {found.scene.words[place]}, layer {layer}",
             f"{found.scene.words[place]}, layer {layer}", "Layers", "The mean of heads")
        for place in DIGIT_PLACES
        for layer in range(weights.shape[1])
    ]  # fmt: skip


def _map(
    found: "Painting", steps: Tensor, most: float, name: str, title: str, tab: str, note: str, opens: bool = False
) -> Heat:
    """Weights of one word, (steps, P), over the picture, with a slider; the mean of all steps is its own."""
    grid = round(steps.shape[1] ** 0.5)
    values = [each.view(grid, grid).tolist() for each in (*steps, steps.mean(0))]
    titles = [*(f"{title}: step {n}" for n in range(len(steps))), f"{title}: mean of all steps"]
    return Heat(
        name=name, title=title, rows=numbered(grid), columns=numbered(grid), values=values[-1], axes=("row", "column"),
        unit="weight", largest=most, group="Heat", under=capital(found.trials[0].name),
        tab=tab, opens=opens, over=Over(titles, values), note=note,
    )  # fmt: skip


def _ink(picture: Tensor) -> list[list[float]]:
    return [[round(value, 4) for value in row] for row in ((picture + 1) / 2).clamp(0, 1).tolist()]
