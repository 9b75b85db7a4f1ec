"""A run as a person follows it: a progress bar, the loss curve, samples, and what is kept of a watched sentence."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from regard.cli.console import consoles
from regard.cli.progress_lines import ProgressLines
from regard.errors import RegardError
from regard.train.distributed import team
from regard.train.loop import Report
from regard.train.run import Ready, ready_for_pairs, ready_for_texts, run_training
from regard.train.run_folder import ABOUT, read_about, read_log
from regard.train.samples import keep_trace, sample
from regard.train.settings import Settings, with_changes
from regard.views.figures.loss import draw_loss


@dataclass(frozen=True)
class Request:
    """What was asked of `regard train`: text files, or a file of pairs; the rest as its options have it."""

    files: Sequence[Path]
    pairs: Path | None
    run: Path
    changes: Mapping[str, Any]
    resume: bool
    watch: str | None
    prompt: str | None
    tensorboard: bool


def train_and_follow(asked: Request, telling: ProgressLines) -> None:
    """Begin a run or go on with it, in a team or alone, and tell of it, as `follow` does.

    Raises:
        RegardError: the texts, the settings or the folder are not what they need to be; nothing is trained then.
    """
    settings = Settings() if asked.pairs is None else Settings.for_pairs()
    resume, watch, prompt = asked.resume, asked.watch, asked.prompt
    if resume and (asked.run / ABOUT).is_file():  # what is not given anew stays as the run has it
        about = read_about(asked.run)
        settings, watch, prompt = about.settings, watch or about.watch, prompt or about.prompt
    chosen = with_changes(settings, asked.changes)
    board = board_kind() if asked.tensorboard else None
    telling.doing("reading and tokenising")
    with team() as joined:
        lead = joined is None or joined.rank == 0
        if joined is not None and not lead:  # the first one makes the folder, the others find it made
            joined.wait()
            resume = True
        options: dict[str, Any] = {"resume": resume, "watch": watch, "prompt": prompt, "lead": lead}
        if asked.pairs is None:
            ready = ready_for_texts(asked.files, asked.run, chosen, **options)
        else:
            ready = ready_for_pairs(asked.pairs, asked.run, chosen, **options)
        if joined is not None and lead:
            joined.wait()
        follow(ready, board=board, team=joined, telling=telling)


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
