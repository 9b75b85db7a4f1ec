"""Define `regard train` and `regard evolve`: train a small transformer, and show how attention changed."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from regard import train as training
from regard.cli import options
from regard.cli.options import number, option
from regard.cli.outputs import NOTHING, Outputs, report, writes
from regard.cli.verb import Verb
from regard.errors import RegardError
from regard.files import check_readable
from regard.train.run_files import check_place_for_run, check_watched_traces
from regard.train.settings import RunOptions, Settings, read_training_settings, with_changes

Files = Annotated[
    list[Path] | None, typer.Argument(metavar="TEXT...", help="Text files in UTF-8, to learn the next token.")
]


def train(
    files: Files = None,
    pairs: Annotated[Path | None, option("--pairs")] = None,
    repeated: Annotated[bool, option("--repeated")] = False,
    out: Annotated[Path | None, option("--out", options.REQUIRED)] = None,
    steps: Annotated[int | None, number("--steps", "2000 (8000 with --pairs, 1200 with --repeated)")] = None,
    resume: Annotated[bool, option("--resume")] = False,
    config: Annotated[Path | None, option("--config")] = None,
    settings: Annotated[list[str] | None, option("--set")] = None,
    watch: Annotated[str | None, option("--watch")] = None,
    prompt: Annotated[str | None, option("--prompt")] = None,
    tensorboard: Annotated[bool, option("--tensorboard")] = False,
) -> None:
    """Train a small transformer on texts, on sentence pairs (--pairs) or on repeated letters (--repeated)."""
    sources = bool(files) + (pairs is not None) + repeated
    if sources != 1:
        count = "several" if sources else "none"
        raise RegardError(f"train: got {count}, expected exactly one of text files, --pairs FILE and --repeated")
    if out is None:
        raise RegardError("--out is needed: the folder for the run")
    sources_read = files or ([] if pairs is None else [pairs])
    for file in sources_read:
        check_readable(file)
    changes = setting_changes(config, settings or (), steps)
    starting = Settings.for_pairs() if pairs is not None else Settings() if files else Settings.for_repeated()
    with_changes(starting, changes)  # raises RegardError for a wrong value
    is_main = os.environ.get("RANK", "0") == "0"  # the main process prints and creates the folder
    if is_main:
        check_place_for_run(out, resume=resume)

    if is_main and not sys.stdout.isatty():  # write a first line to pipes immediately
        names = ", ".join(map(str, sources_read))
        print("Drawing repeated letters …" if repeated else f"Reading {names} …", flush=True)
    options = RunOptions(resume, watch, prompt)
    training.follow.train_and_follow(files or [], pairs, out, starting, changes, options, tensorboard=tensorboard)


@writes("figure", "html of traces", "csv", "json")
def evolve(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="Folder of a run trained with --watch.")] = None,
    layer: options.OneLayer = 0,
    head: options.OneOfHeads = None,
    part: Annotated[str | None, option("--part", "cross")] = None,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Show how the attention and token embeddings of a watched sentence changed during training."""
    if run is None:
        raise RegardError("no run given: regard evolve RUN --layer N --head N --figure F")
    if not run.is_dir():
        raise RegardError(f"no folder {str(run)!r}: name a run that was trained with --watch")
    check_watched_traces(run)
    report(training.evolve.evolution_of(run, layer, head, part=part), outputs, everything=everything)


def setting_changes(config: Path | None, settings: Sequence[str], steps: int | None) -> dict[str, Any]:
    """Return changed settings by name, from --config, --set NAME=VALUE and --steps. Later ones have priority."""
    changes: dict[str, Any] = {} if config is None else read_training_settings(config)
    names = set()
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise RegardError(f"--set {setting!r}: expected NAME=VALUE")
        changes[name.strip()] = set_option_value(text.strip())
        names.add(name.strip())
    if steps is not None and "steps" in names and changes["steps"] != steps:
        raise RegardError(f"--steps {steps} and --set steps={changes['steps']}: pass only one of them")
    return changes | ({} if steps is None else {"steps": steps})


def set_option_value(text: str) -> int | float | bool | str | None:
    """Convert the text of a --set value to a number, True, False, None or a string."""
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


TRAIN = Verb(
    train, "Train a small transformer on texts, pairs or letters.", takes_dtype=False,
    heading="Train",
    examples=("train book.txt --out runs/book --steps 2000", "train --repeated --out runs/induction"),
)  # fmt: skip
EVOLVE = Verb(
    evolve, "Show how attention changed during training.", takes_dtype=False,
    heading="Train",
    examples=("evolve runs/book --layer 1 --figure formed.png", "evolve runs/book --layer 1 --head 0 --csv formed.csv"),
)  # fmt: skip
