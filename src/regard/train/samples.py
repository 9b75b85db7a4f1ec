"""What a run keeps of itself on the way: traces of a watched sentence, and what the model writes."""

import os
from pathlib import Path

import torch

from regard.errors import RegardError
from regard.files import read_regular, whole
from regard.models.model import Model
from regard.trace.file import open_traces
from regard.trace.file import save as save_trace
from regard.trace.trace import PairTrace, Trace
from regard.train.checkpoint import run_files_by_step
from regard.train.data import Pair
from regard.train.run import TrainingRun
from regard.train.watched import WATCH, nothing_watched

SAMPLES = "samples.txt"


def save_watched_trace(run: TrainingRun, sentence: str | Pair, step: int) -> None:
    """Trace the watched sentence as the model is now, into RUN/watch/step-N.safetensors."""
    opened = Model(run.model, run.tokenizer, name=f"{run.folder.name}, step {step}")
    with torch.random.fork_rng(devices=[]):  # looking changes nothing of what is drawn next
        trace: Trace | PairTrace
        if isinstance(sentence, Pair):
            trace = opened.trace(sentence.source, target=sentence.target)
        else:
            trace = opened.trace(sentence)
    folder = run.folder / WATCH
    folder.mkdir(exist_ok=True)
    save_trace(trace, folder / f"step-{step:06d}.safetensors")


def open_watched(run: Path, most: int | None = None) -> list[tuple[int, Trace | PairTrace]]:
    """Open the kept traces of a run, by step; each is read when it is looked at.

    most: at least 2; of more one in two, four or eight and so on, and the last. None for all.
    """
    files = run_files_by_step(run / WATCH, ".safetensors")
    if not files:
        raise nothing_watched(run)
    each = 1
    last = len(files) - 1
    while most is not None and last // each + 1 + (last % each > 0) > max(most, 2):
        each *= 2
    files = files[::each] + (files[-1:] if last % each else [])
    found = []
    for step, file in files:
        trace, *others = open_traces(file)
        if others:
            raise RegardError(f"{str(file)!r} holds several traces, needs the one that a run keeps")
        found.append((step, trace))
    return found


def write_sample(run: TrainingRun, prompt: str, step: int) -> str:
    """Let the model continue (or translate) a prompt, and add what it wrote to RUN/samples.txt."""
    opened = Model(run.model, run.tokenizer, name=run.folder.name)
    pairs = bool(run.held)
    with torch.random.fork_rng(devices=[]):
        if pairs:
            text = opened.generate(prompt, max_new_tokens=min(64, run.settings.block)).text
        else:
            room = run.settings.block - len(opened.tokenizer(prompt, add_special_tokens=False)["input_ids"])
            text = opened.generate(prompt, max_new_tokens=room, do_sample=True, temperature=0.8, seed=step).text
    file = run.folder / SAMPLES
    before = read_regular(file).decode("utf-8", "replace") if os.path.lexists(file) else ""
    shown = f"{prompt} → {text}" if pairs else text
    with whole(file) as temporary:
        lines = [line for line in before.splitlines(True) if not line.startswith(f"step {step}: ")]  # of a killed run
        temporary.write_text(f"{''.join(lines)}step {step}: {shown}\n", encoding="utf-8")
    return shown
