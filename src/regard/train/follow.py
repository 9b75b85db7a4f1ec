"""Train a run in the terminal: show progress and samples, draw the loss curve and save watched traces."""

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from regard.cli.outputs import consoles
from regard.cli.start import settle
from regard.display.terminal_parts import plain_lines_of_parts
from regard.errors import RegardError
from regard.files import read_regular, whole
from regard.models.model import Model
from regard.trace.file import save as save_trace
from regard.trace.trace import PairTrace, Trace
from regard.train.data import Pair
from regard.train.loop import ProcessGroup, StepMetrics, process_group, training_step_due
from regard.train.run import (
    TrainingRun,
    prepare_pair_run,
    prepare_repeated_run,
    prepare_text_run,
    run_training,
)
from regard.train.run_files import LOSS, SAMPLES, WATCH, read_log
from regard.train.run_folder import RUN_JSON, read_run_info
from regard.train.settings import RunOptions, Settings, with_changes
from regard.train.training import training_of_log


def train_and_follow(
    files: Sequence[Path],
    pairs: Path | None,
    folder: Path,
    settings: Settings,
    changes: Mapping[str, Any],
    options: RunOptions,
    *,
    tensorboard: bool = False,
) -> None:
    """Start or resume a run, alone or in several processes, and show its progress in the terminal.

    files, pairs: text files or a file of pairs. If both are missing, train on repeated letters. settings: the defaults
    of a new run. changes: the user's settings. For other arguments, see `regard train`.
    """
    if options.resume and (folder / RUN_JSON).is_file():  # keep the run's settings
        info = read_run_info(folder)
        settings = info.settings
        options = replace(options, watch=options.watch or info.watch, prompt=options.prompt or info.prompt)
    run_settings = with_changes(settings, changes)
    board = tensorboard_option_writer() if tensorboard else None
    with process_group() as processes:
        is_main = processes is None or processes.rank == 0
        if processes is not None and not is_main:  # wait until the main process has created the folder
            processes.wait()
        options = replace(options, resume=options.resume or not is_main, is_main=is_main)
        if pairs is not None:
            run = prepare_pair_run(pairs, folder, run_settings, options)
        elif files:
            run = prepare_text_run(files, folder, run_settings, options)
        else:
            run = prepare_repeated_run(folder, run_settings, options)
        if processes is not None and is_main:
            processes.wait()
        follow_run_in_terminal(run, board=board, processes=processes)


def follow_run_in_terminal(run: TrainingRun, *, board: Any, processes: ProcessGroup | None) -> None:
    """Train a run and print its progress. After Ctrl-C, saves the run and exits with 130."""
    settle()
    out, bar = consoles()
    is_main = processes is None or processes.rank == 0

    has_progress_bar = is_main and out.is_terminal and bar.is_terminal

    def print_line(line: str, **style: Any) -> None:
        (bar if has_progress_bar else out).print(line, markup=False, soft_wrap=True, **style)

    if is_main:
        for note in (*run.notes, f"Model: {run.parameters:,} parameters on {run.model.device}."):
            print_line(note, style="dim")
    writer = board(str(run.folder / "tensorboard")) if board is not None and is_main else None
    settings, watch, prompt = run.settings, run.watched, run.prompt
    columns = (TextColumn("Step {task.completed}/{task.total}"), BarColumn(), TimeRemainingColumn(),
               TextColumn("loss {task.fields[loss]}  {task.fields[speed]}"))  # fmt: skip
    speed: list[float] = []
    with Progress(*columns, console=bar, disable=not has_progress_bar, transient=True) as progress:
        task = progress.add_task("", total=settings.steps, completed=run.state.step, loss="–", speed="–")

        def on_log(metrics: StepMetrics) -> None:
            speed.append(metrics.tokens / metrics.seconds)
            del speed[:-50]
            rate = f"{sorted(speed)[len(speed) // 2]:,.0f} tokens/s"
            progress.update(task, completed=metrics.step, loss=f"{metrics.loss:.3f}", speed=rate)
            held_out = "" if metrics.validation is None else f", held-out loss {metrics.validation:.4f}"
            progress_line = f"Step {metrics.step} of {settings.steps}: loss {metrics.loss:.4f}{held_out}, {rate}"
            if is_main and (held_out or (not has_progress_bar and len(speed) == 1)):  # print a first line early
                print_line(progress_line)
            if writer is not None:
                writer.add_scalar("loss", metrics.loss, metrics.step)
                writer.add_scalar("rate", metrics.rate, metrics.step)
                if metrics.validation is not None:
                    writer.add_scalar("held out", metrics.validation, metrics.step)

        def on_step_end(step: int) -> None:
            last = step == settings.steps
            if watch is not None and (last or training_step_due(step, settings.watch_every)):
                save_watched_trace(run, watch, step)
            if not (last or training_step_due(step, settings.sample_every)):
                return
            if prompt is not None or run.held:
                text = prompt if prompt is not None else run.held[0].source
                print_line(f"  Sample: {write_sample(run, text, step)!r}", style="dim")

        if watch is not None and is_main and run.state.step == 0:
            save_watched_trace(run, watch, 0)
        final_state = run_training(run, on_log=on_log, on_step_end=on_step_end, processes=processes)
    if writer is not None:
        writer.close()
    if not is_main:
        return
    training = training_of_log(read_log(run.folder), run.model.config, settings)
    training.draw(run.folder / LOSS)
    ended = "done" if final_state.step == settings.steps else "stopped (continue with --resume)"
    best = "" if final_state.best is None else f", smallest held-out loss {final_state.best:.4f}"
    print_line(f"Step {final_state.step} of {settings.steps}: {ended}{best}")
    writes = "translate" if run.held else "generate"
    sources = sorted((pair.source for pair in run.held), key=len)
    texts = (sample for sample in (run.prompt, *sources, run.watched, "Once upon a time") if isinstance(sample, str))
    text = next(sample for sample in texts if not sample.startswith("-"))  # it would look like an option
    command = shlex.join([text, "--model", str(run.folder)])
    hint = ["Now run:", *(f"  regard {verb} {command}" for verb in (writes, "see")), f"Loss curve: {run.folder / LOSS}"]
    for line in ["", *plain_lines_of_parts(training.shown(out.width), out.width), *hint]:
        print_line(line)
    print_line(f"Wrote {run.folder}", style="dim")
    if final_state.step < settings.steps:
        sys.stdout.flush()
        raise SystemExit(130)


def tensorboard_option_writer() -> Callable[..., Any]:
    """Return the class that writes TensorBoard logs. Raises RegardError if TensorBoard isn't installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise RegardError("--tensorboard needs the package: pip install 'regard[tensorboard]'") from None
    return SummaryWriter


def save_watched_trace(run: TrainingRun, sentence: str | Pair, step: int) -> None:
    """Trace the watched sentence with the current model into RUN/watch/step-N.safetensors."""
    model = Model(run.model, run.tokenizer, name=f"{run.folder.name}, step {step}")
    with torch.random.fork_rng(devices=[]):  # the trace must not change later random numbers
        trace: Trace | PairTrace
        if isinstance(sentence, Pair):
            trace = model.trace(sentence.source, target=sentence.target)
        else:
            trace = model.trace(sentence)
    folder = run.folder / WATCH
    folder.mkdir(exist_ok=True)
    save_trace(trace, folder / f"step-{step:06d}.safetensors")


def write_sample(run: TrainingRun, prompt: str, step: int) -> str:
    """Generate a continuation (or translation) of a prompt, and add it to RUN/samples.txt, once per step."""
    model = Model(run.model, run.tokenizer, name=run.folder.name)
    pairs = bool(run.held)
    with torch.random.fork_rng(devices=[]):
        if pairs:
            text = model.generate(prompt, max_new_tokens=min(64, run.settings.block)).text
        else:
            free_tokens = run.settings.block - len(model.tokenizer(prompt, add_special_tokens=False)["input_ids"])
            text = model.generate(prompt, max_new_tokens=free_tokens, do_sample=True, temperature=0.8, seed=step).text
    file = run.folder / SAMPLES
    before = read_regular(file, most=1 << 30).decode("utf-8", "replace") if os.path.lexists(file) else ""
    sample = f"{prompt} → {text}" if pairs else text
    with whole(file) as temporary:
        lines = [line for line in before.splitlines(True) if not line.startswith(f"step {step}: ")]
        temporary.write_text(f"{''.join(lines)}step {step}: {sample}\n", encoding="utf-8")
    return sample
