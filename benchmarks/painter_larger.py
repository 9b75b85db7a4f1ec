"""A harder scene to paint: python -m benchmarks.painter_larger [--values plain contextual] [--steps 2000] [--seed 0]

24 × 24 pixels, 3 × 3 cells, one to three digits, each in a cell of its own: "a seven top centre , a two middle left".
Ten of the ninety pairs of digit and cell are in no scene that is learned from; how they are painted says whether the
words are put together or remembered. Everything else is as `python -m benchmarks.painter` has it. A row a number of
digits, over 200 scenes each; the last is of one to three digits, every one in a cell that it was never learned in.
"""

import argparse
import time

import torch
from torch import Tensor

from benchmarks.measure import machine
from regard.nn.painter import Painter, patches
from regard.nn.painter_config import PainterConfig
from regard.nn.painting import paint
from regard.train.checkpoint import TrainingState
from regard.train.loop import optimiser_of, train
from regard.train.painter_measures import INK, SPOTS, DigitJudge
from regard.train.scene_words import ARTICLE, COMMA, DIGITS, START
from regard.train.scenes import CELL, PAPER, DigitPictures, Scenes, draw_digits
from regard.train.settings import Settings

ACROSS, MOST = 3, 3  # cells of a row and of a column; digits of a scene
CELLS, SIDE = ACROSS**2, ACROSS * CELL
NOTHING = "<nothing>"  # fills the line where a scene has fewer digits
WORDS = (START, NOTHING, COMMA, ARTICLE, "top", "middle", "bottom", "left", "centre", "right", *DIGITS)
NUMBER = {word: number for number, word in enumerate(WORDS)}
LENGTH = 5 * MOST
SCENES = 200


def held_out(digits: Tensor, cells: Tensor) -> Tensor:
    """Tell which pairs of digit and cell are in no scene that is learned from: one cell of each digit."""
    return cells == digits % CELLS


def draw(
    count: int, drawn: torch.Generator, many: int | None = None, *, unseen: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw digits (n, 3), cells (n, 3), and which of them there are, (n, 3) of booleans.

    many: how many digits, one to three by chance for None. unseen: whether all pairs are held out, else none is.
    """
    cells = torch.rand(count, CELLS, generator=drawn).argsort(-1)[:, :MOST]
    digits = torch.randint(10, (count, MOST), generator=drawn)
    if unseen:
        digits = cells  # of 0 and 9, which share a cell, 0
    else:
        digits = torch.where(held_out(digits, cells), (digits + 1) % 10, digits)
        digits = torch.where(held_out(digits, cells), (digits + 1) % 10, digits)  # 9 and 0 share a cell
    number = torch.randint(1, MOST + 1, (count,), generator=drawn) if many is None else torch.full((count,), many)
    return digits, cells, torch.arange(MOST) < number[:, None]


def spelled(digits: Tensor, cells: Tensor, there: Tensor) -> Tensor:
    """Spell scenes as ids of words, (n, L)."""
    ids = torch.full((len(digits), LENGTH), NUMBER[NOTHING])
    for slot in range(MOST):
        own = [
            torch.full((len(digits),), NUMBER[COMMA] if slot else NUMBER[START]),
            torch.full((len(digits),), NUMBER[ARTICLE]),
            NUMBER[DIGITS[0]] + digits[:, slot],
            NUMBER["top"] + cells[:, slot] // ACROSS,
            NUMBER["left"] + cells[:, slot] % ACROSS,
        ]
        ids[:, 5 * slot : 5 * slot + 5] = torch.where(there[:, slot, None], torch.stack(own, 1), NUMBER[NOTHING])
    return ids


def pictured(source: DigitPictures, digits: Tensor, cells: Tensor, there: Tensor, drawn: torch.Generator) -> Tensor:
    """Put pictures of the digits, each drawn from all of its kind, into their cells: (n, 24, 24)."""
    every = draw_digits(source, digits, drawn)
    made = torch.full((len(digits), CELLS, CELL, CELL), PAPER)
    for slot in range(MOST):
        rows = torch.arange(len(digits))[there[:, slot]]
        made[rows, cells[rows, slot]] = every[rows, slot]
    grid = made.view(-1, ACROSS, ACROSS, CELL, CELL)
    return grid.transpose(2, 3).reshape(len(digits), SIDE, SIDE)


class LargerScenes(Scenes):
    """Scenes without end."""

    def drawn(self, digits: DigitPictures, drawn: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw lines, as ids of words, and their pictures of these digits."""
        scenes = draw(self.size, drawn)
        return spelled(*scenes), pictured(digits, *scenes, drawn)


def measured(model: Painter, judge: DigitJudge, many: int | None, *, unseen: bool = False) -> dict[str, float]:
    """Shares, from 0 to 1, over scenes of so many digits: right, whole, pointing, and of two digits swapped."""
    drawn = torch.Generator().manual_seed(7)
    digits, cells, there = draw(SCENES, drawn, many, unseen=unseen)
    words, noise = spelled(digits, cells, there), torch.randn(SCENES, SIDE, SIDE, generator=drawn)
    painted, rows = paint(model, words, noise), torch.arange(SCENES)[:, None]
    cut = patches(painted.pictures, ACROSS)  # (n, 9, 64)
    right = (judge.named(cut[rows, cells]) == digits) | ~there
    empty = torch.ones(SCENES, CELLS, dtype=torch.bool)
    empty[rows.expand_as(cells)[there], cells[there]] = False
    blank = ((cut > INK).sum(-1) <= SPOTS) | ~empty
    patch = torch.arange(model.config.grid**2)
    size = model.config.grid // ACROSS
    cell = patch // model.config.grid // size * ACROSS + patch % model.config.grid // size
    most = painted.heat[..., [2, 7, 12]].argmax(1)  # (n, 3): the patch that a digit's word has most of
    found = {
        "right": share(right[there]),
        "whole": share(right.all(-1) & blank.all(-1)),
        "pointing": share((cell[most] == cells)[there]),
    }
    if many == 2:
        keys = torch.arange(LENGTH)
        keys[[2, 7]] = torch.tensor([7, 2])
        other = patches(paint(model, words, noise, keys=keys).pictures, ACROSS)[rows, cells[:, :2]]
        found["swapped"] = share((judge.named(other) == digits[:, :2].flip(1))[digits[:, 0] != digits[:, 1]])
    return found


def share(found: Tensor) -> float:
    return float(found.double().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", nargs="+", default=["plain", "contextual"])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(machine())
    print("values | digits | right | whole | pointing | swapped | minutes of training")
    for values in asked.values:
        begun = time.process_time()
        settings = Settings.for_painter(
            values=values, seed=asked.seed, steps=asked.steps, evaluate_every=0, save_every=0, sample_every=0
        )
        torch.manual_seed(asked.seed)
        model = Painter(PainterConfig(vocabulary=len(WORDS), length=LENGTH, side=SIDE, values=values))
        data = LargerScenes(batch=settings.batch, seed=asked.seed)
        train(
            model, data, optimiser_of(model, settings), settings, TrainingState(),
            save=lambda _: None, on_log=lambda _: None,
        )  # fmt: skip
        minutes, judge = (time.process_time() - begun) / 60, DigitJudge(data.held)
        for many, unseen in ((1, False), (2, False), (3, False), (None, True)):
            found = measured(model, judge, many, unseen=unseen)
            told = [f"{found[name]:.3f}" if name in found else "" for name in ("right", "whole", "pointing", "swapped")]
            print(" | ".join([values, "never learned" if unseen else str(many), *told, f"{minutes:.1f}"]), flush=True)


if __name__ == "__main__":
    main()
