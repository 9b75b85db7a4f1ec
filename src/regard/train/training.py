"""Report the result of a training run: a curve of the loss at every update, and the held-out losses."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from regard.display.answer import Answer
from regard.display.panels import Cell, Column, Curve, Curves, Panel, Table
from regard.display.sentences import Template, sentences
from regard.nn.config import TransformerConfig
from regard.shown import Row
from regard.train.run_files import LOG, read_log
from regard.train.run_folder import RUN_JSON, read_run_info
from regard.train.settings import Settings

Log = Sequence[Mapping[str, Any]]  # one entry per update: "step", "loss" and "validation" (None if not measured)

PART = 50  # the first and last loss are means over 1/PART of all updates
MOST = 8  # maximum evaluations in a terminal
POINTS = 400  # maximum points of a page's loss curve
DRAWN = 100  # maximum points of a figure's loss curve, which can't be zoomed


SAME = 0.02  # nats per token: losses that differ by less are about equal

HELD = "The held-out loss is {held:n} at step {at}"
TABLE: list[list[Template]] = [
    [
        ("After one update the loss is {last:n} nats per token.", lambda n: n["count"] == 1),
        (
            "From step {start} to {end}, the loss{mean} stayed at about {first:n} nats per token.",
            lambda n: abs(n["change"]) < SAME,
        ),
        (
            "From step {start} to {end}, the loss{mean} fell from {first:n} to {last:n} nats per token.",
            lambda n: n["change"] < 0,
        ),
        ("From step {start} to {end}, the loss{mean} rose from {first:n} to {last:n} nats per token.", None),
    ],
    [
        (
            "This is no better than guessing evenly among {vocabulary} tokens ({chance:n}).",
            lambda n: n["better"] < SAME,
        ),
        ("Guessing evenly among {vocabulary} tokens would give {chance:n}.", None),
    ],
    [
        (
            "The held-out loss rose from {lowest:n} at step {then} to {held:n} at step {at} while the training loss "
            "fell: the model overfits.",
            lambda n: n["rose"] >= SAME and n["overfits"],
        ),
        (
            "The held-out loss rose from {lowest:n} at step {then} to {held:n} at step {at}.",
            lambda n: n["rose"] >= SAME,
        ),
        (HELD + " and still falling.", lambda n: n["fell"] >= SAME),
        (HELD + ", {gap:n} above the training loss.", lambda n: n["gap"] >= 5 * SAME),
        (HELD + ".", None),
    ],
]


@dataclass(frozen=True)
class Evaluation:
    """A held-out loss (`validation`), and the mean training loss since the previous evaluation."""

    step: int
    loss: float
    validation: float


@dataclass(frozen=True, eq=False, repr=False)
class Training(Answer):
    """The answer of `regard train`: a run's log. vocabulary: its size. smoothing: the label smoothing of the loss."""

    format: ClassVar[str] = "regard train"

    log: Log
    vocabulary: int = 1
    smoothing: float = 0.0

    def title(self) -> str:
        """Return the title, with the first and last loss."""
        if not self.log:
            return "Training loss: no update yet"
        ends = ", ".join(f"{line['loss']:.2f} at step {line['step']:.0f}" for line in (self.log[0], self.log[-1]))
        last = [line for line in self.log if line["validation"] is not None][-1:]
        return f"Training loss: {ends}" + "".join(f", held out {e['validation']:.2f} at step {e['step']}" for e in last)

    def findings(self) -> list[str]:
        """Write how training and held-out losses changed. Returns an empty list if no loss is finite."""
        finite = [line["loss"] for line in self.log if math.isfinite(line["loss"])]
        if not finite:
            return []
        size, evals = max(1, len(finite) // PART), evaluations(self.log)
        first, last = sum(finite[:size]) / size, sum(finite[-size:]) / size
        chance = math.log(self.vocabulary) if self.vocabulary > 1 else None
        numbers: dict[str, Any] = {
            "count": len(self.log), "change": last - first, "first": first, "last": last, "chance": chance,
            "start": self.log[0]["step"], "end": self.log[-1]["step"], "vocabulary": self.vocabulary,
            "mean": f" (mean of {size} updates)" if size > 1 else "", "better": (chance or 0) - last,
        }  # fmt: skip
        if evals:
            best = min(evals, key=lambda point: point.validation)
            numbers |= {
                "held": evals[-1].validation, "at": evals[-1].step, "lowest": best.validation, "then": best.step,
                "overfits": evals[-1].loss < best.loss, "rose": evals[-1].validation - best.validation,
                "fell": evals[-2].validation - evals[-1].validation if len(evals) > 2 and best is evals[-1] else 0.0,
                "gap": evals[-1].validation - last,
            }  # fmt: skip
        return sentences(TABLE, numbers)

    def rows(self) -> list[Row]:
        """Return a row per update, with its loss and held-out loss."""
        return [{"step": line["step"], "loss": line["loss"], "held_out": line["validation"]} for line in self.log]

    def panels(self) -> list[Panel]:
        """Return the loss curve and tables of evaluations. A terminal shows some of them, or the curve."""
        measured = evaluations(self.log)
        selected = [measured[n] for n in evenly_spaced(len(measured), MOST)]
        panels: list[Panel] = [replace(self.loss(), screen=len(measured) < 2 and len(self.log) > 1, picture=True)]
        if len(selected) < len(measured):
            part = f", {len(selected)} of {len(measured)} (all in {LOG})"
            panels.append(_table_of_evaluations("Some evaluations", selected, part, screen=True))
        if len(measured) > 1:
            panels.append(_table_of_evaluations("Evaluations", measured, screen=len(selected) == len(measured)))
        return panels

    def chosen(self, names: Sequence[str] = ()) -> list[Panel]:
        """Return the panels with these names. Default: the loss curve, with fewer points."""
        return super().chosen(names) if names else [self.loss(DRAWN)]

    def loss(self, limit: int = POINTS) -> Curves:
        """Return the loss curve. With more than `limit` updates, its points are means of equally many updates."""
        training, size = _curve("training", [(line["step"], line["loss"]) for line in self.log], limit)
        smoothed = f", with labels smoothed by {self.smoothing:g}" if self.smoothing else ""
        points = "one update" if size == 1 else f"the mean of {size} updates, and the band is their range"
        held_out = [(line["step"], loss) for line in self.log if (loss := line["validation"]) is not None]
        note = f"Each point is {points}{smoothed}." + " Held-out texts aren't used for training." * bool(held_out)
        return Curves(
            name="Loss", title="Loss, step by step", note=note, caption=note, x="step", y="loss in nats per token",
            series=[training, *([_curve("held out", held_out, limit)[0]] if held_out else [])], unbounded=True,
        )  # fmt: skip


def training_of(run: Path) -> Training | None:
    """Read a run's log as an answer, with its model and settings if known. None without a log."""
    if not (run / LOG).is_file():
        return None
    if not (run / RUN_JSON).is_file():
        return Training(read_log(run))
    info = read_run_info(run)
    return training_of_log(read_log(run), info.config, info.settings)


def training_of_log(log: Log, config: TransformerConfig, settings: Settings) -> Training:
    """Return the answer for a log, with the model's vocabulary and the label smoothing."""
    return Training(log, config.vocabulary, settings.smoothing)


def evaluations(log: Log) -> list[Evaluation]:
    """Return every held-out loss in order, with the mean training loss since the previous evaluation."""
    result: list[Evaluation] = []
    since: list[float] = []
    for line in log:
        since.append(line["loss"])
        if line["validation"] is not None:
            result.append(Evaluation(line["step"], sum(since) / len(since), line["validation"]))
            since = []
    return result


def _table_of_evaluations(name: str, points: Sequence[Evaluation], suffix: str = "", *, screen: bool) -> Table:
    rows: list[list[Cell]] = [[point.step, point.loss, point.validation] for point in points]
    return Table(
        name=name, title=f"Loss at evaluations{suffix}", rows=rows, screen=screen, brief=bool(suffix),
        note="Loss is the mean since the previous evaluation, and bars show the held-out loss.",
        columns=[Column("step", 0), Column("loss", 2, unbounded=True),
                 Column("held out", 2, bar=True, unbounded=True)],
    )  # fmt: skip


def _curve(name: str, points: Sequence[tuple[int, float]], limit: int) -> tuple[Curve, int]:
    """Return a curve of at most `limit` points, and the number of values per point, a power of two."""
    steps, values = [step for step, _ in points], [value for _, value in points]
    size = 1
    while -(-len(values) // size) > limit:
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


def evenly_spaced(count: int, limit: int) -> list[int]:
    """Return at most `limit` evenly spaced numbers from 0 to count - 1, including the first and the last."""
    return [round(n * (count - 1) / (limit - 1)) for n in range(limit)] if count > limit else list(range(count))
