"""How a training run went: the loss of every update as a curve, what it fell to held out and not, what that means."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from regard.display.answer import Answer
from regard.display.panels import Cell, Column, Curve, Curves, Panel, Table
from regard.explain.frames import Row
from regard.explain.wording import capital
from regard.nn.config import TransformerConfig
from regard.questions.evolve.panels import evenly
from regard.train.log import LOG, read_log
from regard.train.run_folder import RUN_JSON, read_run_info
from regard.train.settings import Settings

Log = Sequence[
    Mapping[str, int | float | None]
]  # an entry an update: "step", "loss", and "validation" where it was measured

PART = 50  # a mean at either end is over this part of all updates
MOST = 8  # evaluations that a terminal shows
POINTS = 400  # of a line of the loss on a page
DRAWN = 100  # of one in a picture, where nobody can look closer


SAME = 0.02  # nats a token: losses that differ by less are called about equal


@dataclass(frozen=True)
class Evaluation:
    """A held-out loss, and the mean of the updates' own losses since the one before."""

    step: int
    loss: float
    validation: float


@dataclass(frozen=True, eq=False, repr=False)
class Training(Answer):
    """How a run went, by its log. vocabulary: how many tokens there are; smoothing: of the labels, in the loss."""

    format: ClassVar[str] = "regard train"

    log: Log
    vocabulary: int = 1
    smoothing: float = 0.0

    def title(self) -> str:
        """What the loss was at first and at last."""
        if not self.log:
            return "Training loss: no update yet"
        ends = ", ".join(f"{_loss(each):.2f} at step {each['step']:.0f}" for each in (self.log[0], self.log[-1]))
        held = [each for each in self.log if each["validation"] is not None][-1:]
        return f"Training loss: {ends}" + "".join(
            f"; held out: {e['validation']:.3f} at step {e['step']}" for e in held
        )

    def findings(self) -> list[str]:
        """Say what the loss fell to, held out and not; nothing where none is a number."""
        known = [loss for each in self.log if math.isfinite(loss := _loss(each))]
        if not known:
            return []
        size = max(1, len(known) // PART)
        first, last = sum(known[:size]) / size, sum(known[-size:]) / size
        fell = _fell(self, first, last, size)
        said = (fell, _chance(last, self.vocabulary), *_held(self.log, last))
        return [sentence for sentence in said if sentence]

    def rows(self) -> list[Row]:
        """One row an update."""
        return [{"step": each["step"], "loss": each["loss"], "held_out": each["validation"]} for each in self.log]

    def panels(self) -> list[Panel]:
        """The loss as a curve, and at its evaluations; a terminal has some of these, or else the curve."""
        found = evaluations(self.log)
        some = [found[n] for n in evenly(len(found), MOST)]
        panels: list[Panel] = [replace(self.loss(), screen=len(found) < 2 and len(self.log) > 1, picture=True)]
        if len(some) < len(found):
            note = f"{len(found) - len(some)} more evaluations are in {LOG}"
            panels.append(_evaluations("Some evaluations", some, f"; {note}", screen=True))
        if len(found) > 1:
            panels.append(_evaluations("Evaluations", found, screen=len(some) == len(found)))
        return panels

    def chosen(self, names: Sequence[str] = ()) -> list[Panel]:
        """The panels of these names; of its picture the loss, whose every point is the mean of more updates."""
        return super().chosen(names) if names else [self.loss(DRAWN)]

    def loss(self, most: int = POINTS) -> Curves:
        """Draw the loss: every update's while there is room for so many points, then means over as many each."""
        training, size = _line("training", [(_step(each), _loss(each)) for each in self.log], most)
        lines, notes = [training], [_each("each update's own", "updates", size)]
        if self.smoothing:
            notes[0] += f", with labels smoothed by {self.smoothing:g}"
        held = [(_step(each), loss) for each in self.log if (loss := each["validation"]) is not None]
        if held:
            line, size = _line("held out", held, most)
            lines.append(line)
            notes.append(_each("what is not trained on", "evaluations", size, "held out"))
        note = "; ".join(notes)
        return Curves(
            name="Loss", title="Loss, step by step", note=note, caption=capital(note), x="step",
            y="loss in nats a token", series=lines, unbounded=True,
        )  # fmt: skip


def training_of(run: Path) -> Training | None:
    """Read how a run went, as far as its folder has that; None without a log."""
    if not (run / LOG).is_file():
        return None
    if not (run / RUN_JSON).is_file():
        return Training(read_log(run))
    info = read_run_info(run)
    return training_of_log(read_log(run), info.config, info.settings)


def training_of_log(log: Log, config: TransformerConfig, settings: Settings) -> Training:
    """Say how a run with this model and these settings went."""
    return Training(log, config.vocabulary, settings.smoothing)


def evaluations(log: Log) -> list[Evaluation]:
    """Every held-out loss in order, with what the updates before it had."""
    found: list[Evaluation] = []
    since: list[float] = []
    for each in log:
        loss, validation, step = each["loss"], each["validation"], each["step"]
        if loss is not None:
            since.append(loss)
        if validation is not None and since and step is not None:
            found.append(Evaluation(int(step), sum(since) / len(since), validation))
            since = []
    return found


def _evaluations(name: str, found: Sequence[Evaluation], more: str = "", *, screen: bool) -> Table:
    rows: list[list[Cell]] = [[each.step, each.loss, each.validation] for each in found]
    return Table(
        name=name, title="Loss at evaluations", rows=rows, screen=screen, brief=bool(more),
        note=f"loss: mean of the updates since the evaluation before; a bar: held out{more}",
        columns=[Column("step", 0), Column("loss", 2, unbounded=True),
                 Column("held out", 2, bar=True, unbounded=True)],
    )  # fmt: skip


def _step(each: Mapping[str, int | float | None]) -> int:
    return int(each["step"] or 0)


def _loss(each: Mapping[str, int | float | None]) -> float:
    return math.nan if each["loss"] is None else each["loss"]


def _each(what: str, of: str, size: int, line: str = "training") -> str:
    if size == 1:
        return f"{line}: {what}"
    return f"{line}: each point the mean of {size} {of}, the band from their least to their largest"


def _line(name: str, points: Sequence[tuple[int, float]], most: int) -> tuple[Curve, int]:
    """A line of at most so many points, and how many values make one: a power of two, so that points stay in place."""
    steps, values = [step for step, _ in points], [value for _, value in points]
    size = 1
    while -(-len(values) // size) > most:
        size *= 2
    if size == 1:
        return Curve(name, steps, values), 1
    starts = list(range(0, len(values), size))
    ends = [*starts[1:], len(values)]
    numbers = np.asarray(values, np.float64)
    low, high = np.minimum.reduceat(numbers, starts), np.maximum.reduceat(numbers, starts)
    means = np.add.reduceat(numbers, starts) / np.subtract(ends, starts)
    first, last = [steps[start] for start in starts], [steps[end - 1] for end in ends]
    return Curve(name, last, means.tolist(), first, low.tolist(), high.tolist()), size


def _fell(went: Training, first: float, last: float, size: int) -> str:
    log, plain = went.log, went.smoothing == 0 and last < 20
    mean = f", each a mean of {size} updates" if size > 1 else ""
    among = f": as unsure as among {math.exp(last):.1f} equally likely tokens" if plain else ""
    begin, end = (f"{each['step']:.0f}" for each in (log[0], log[-1]))
    if len(log) == 1:
        return f"After one update the loss is {last:.2f} nats a token{among}."
    how = "stayed at about" if abs(first - last) < SAME else "fell from" if last < first else "rose from"
    to = "" if how.startswith("stayed") else f" to {last:.2f}"
    return f"From step {begin} to {end} the loss {how} {first:.2f}{to} nats a token{mean}{among}."


def _chance(last: float, vocabulary: int) -> str:
    chance = math.log(vocabulary) if vocabulary > 1 else 0.0
    if not chance:
        return ""
    says = "the run is no better than that" if last > chance - SAME else f"the run is {chance - last:.2f} below it"
    return f"Guessing evenly among its {vocabulary:,} tokens would be {chance:.2f}; {says}."


def _held(log: Log, last: float) -> list[str]:
    """What held-out losses say: whether it still learns, or has begun to learn its texts by heart."""
    found = evaluations(log)
    if not found:
        return []

    def told(loss: float) -> str:
        return f"{loss:.2f}"

    best, end = min(found, key=lambda each: each.validation), found[-1]
    if len(found) == 1:
        says = f"Held out the loss is {told(end.validation)} at step {end.step}."
    elif end.validation - best.validation >= SAME:
        since = "learned its own texts, not others" if end.loss < best.loss else "rose"
        says = (
            f"Held out it was smallest at step {best.step} ({told(best.validation)}) and is {told(end.validation)} at "
            f"step {end.step}: since then it {since}."
        )
    elif len(found) > 2 and best is end and found[-2].validation - end.validation >= SAME:
        says = (
            f"Held out it is smallest at its last evaluation, {told(end.validation)} at step {end.step}: still falling."
        )
    else:
        smallest = f"smallest was {told(best.validation)} at step {best.step}"
        says = f"Held out it is {told(end.validation)} at step {end.step}; {smallest}."
    gap = end.validation - last
    apart = f"On texts held out the loss is {told(gap)} larger than on those it trained on."
    return [says, apart if gap >= 5 * SAME else ""]
