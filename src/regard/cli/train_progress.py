"""A run as a person follows it: a progress bar, the loss curve, samples, and what is kept of a watched sentence."""

import sys
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from regard.cli.console import consoles
from regard.cli.progress_lines import ProgressLines
from regard.errors import RegardError
from regard.train.loop import Report
from regard.train.run import Ready, run_training
from regard.train.run_folder import read_log
from regard.train.samples import keep_trace, sample
from regard.views.figures.loss import draw_loss


def follow(ready: Ready, *, board: Any, team: Any, telling: ProgressLines) -> None:
    """Train, and tell of it. Leaves with 130 where Ctrl-C stopped it, after it was saved.

    board: of `board_kind`, or None. telling: where lines go when no progress bar is shown.
    """
    out, bar = consoles()
    lead = team is None or team.rank == 0

    def say(line: str, **style: Any) -> None:
        if telling.alone:  # through a pipe: whole lines, at once
            telling.say(line)
        else:
            (bar if bar.is_terminal else out).print(line, markup=False, **style)

    if lead:
        for note in (*ready.notes, f"{ready.parameters:,} parameters to learn, on {ready.model.device}"):
            say(note, style="dim")
    writer = board(str(ready.run / "tensorboard")) if board is not None and lead else None
    settings, watch, prompt = ready.settings, ready.watched, ready.prompt
    columns = (TextColumn("step {task.completed}/{task.total}"), BarColumn(), TimeRemainingColumn(),
               TextColumn("loss {task.fields[loss]}  {task.fields[speed]} tokens/s"))  # fmt: skip
    speed: list[float] = []
    with Progress(*columns, console=bar, disable=not lead or not bar.is_terminal, transient=True) as progress:
        task = progress.add_task("", total=settings.steps, completed=ready.progress.step, loss="–", speed="–")

        def tell(report: Report) -> None:
            speed.append(report.tokens / report.seconds)
            del speed[:-50]
            fast = f"{sorted(speed)[len(speed) // 2]:,.0f}"
            progress.update(task, completed=report.step, loss=f"{report.loss:.3f}", speed=fast)
            held = "" if report.validation is None else f", held out {report.validation:.4f}"
            progress_line = f"step {report.step} of {settings.steps}: loss {report.loss:.4f}{held}, {fast} tokens/s"
            telling.doing(progress_line)
            if held or (telling.alone and len(speed) == 1):  # the first one shows that it trains
                say(progress_line)
            if writer is not None:
                writer.add_scalar("loss", report.loss, report.step)
                writer.add_scalar("rate", report.rate, report.step)
                if report.validation is not None:
                    writer.add_scalar("held out", report.validation, report.step)

        def look(step: int) -> None:
            last = step == settings.steps
            if watch is not None and (last or _due(step, settings.watch_every)):
                keep_trace(ready, watch, step)
            if (prompt is not None or ready.held) and (last or _due(step, settings.sample_every)):
                text = prompt if prompt is not None else ready.held[0].source
                say(f"  writes: {sample(ready, text, step)!r}", style="dim")

        if watch is not None and lead and ready.progress.step == 0:
            keep_trace(ready, watch, 0)
        done = run_training(ready, tell=tell, look=look, team=team)
    if writer is not None:
        writer.close()
    if not lead:
        return
    draw_loss(read_log(ready.run), ready.run / "loss.png")
    ended = "done" if done.step == settings.steps else "stopped, go on with the same command and --resume"
    best = "" if done.best is None else f", smallest loss held out {done.best:.4f}"
    say(f"step {done.step} of {settings.steps}: {ended}{best}")
    say(f"wrote {ready.run}", style="dim")
    if done.step < settings.steps:
        sys.stdout.flush()
        raise SystemExit(130)


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def board_kind() -> Any:
    """What writes for TensorBoard.

    Raises:
        RegardError: the package is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise RegardError("--tensorboard needs the package: pip install 'regard[tensorboard]'") from None
    return SummaryWriter
