"""How a training run went, in a terminal: sentences, and the losses at its evaluations."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from regard.explain.findings.training import Log, evaluations, some_evaluations, training_findings
from regard.views.terminal.layout import columns
from regard.views.terminal.one_screen import bar, sentences


def training(log: Log, vocabulary: int, folder: str, width: int, *, smoothing: float = 0.0) -> Sequence[RenderableType]:
    """The parts: what was found, and a table of evaluations, of many some. folder: the run's."""
    found = evaluations(log)
    shown = some_evaluations(found)
    parts: list[RenderableType] = [sentences(training_findings(log, vocabulary, smoothing=smoothing))]
    if len(shown) > 1:
        full = max(each.validation for each in shown)
        rows = columns(("step", "right"), ("loss", "right"), ("held out", "right"), "")
        for each in shown:
            drawn = bar(each.validation, full, max(4, min(40, width - 40)))
            rows.add_row(str(each.step), f"{each.loss:.3f}", f"{each.validation:.3f}", drawn)
        left = len(found) - len(shown)
        note = "loss: mean of the updates since the evaluation before; a bar: held out"
        note += f"; {left} more evaluations are in log.jsonl" if left else ""
        parts += [rows, Text(note, style="dim"), Text()]
    more = f"more: regard generate TEXT --model {folder}, regard see TEXT --model {folder}; {folder}/loss.png"
    return [*parts, Text(more, style="dim")]
