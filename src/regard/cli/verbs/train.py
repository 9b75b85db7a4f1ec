"""`regard train`: a transformer of your own, of texts, sentence pairs, or letters that come again."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options
from regard.cli.options import flag, said
from regard.cli.setting_changes import setting_changes, starting_settings
from regard.errors import RegardError
from regard.files import check_readable
from regard.train.settings import with_changes
from regard.train.watched import check_place_for_run

Files = Annotated[list[Path] | None, typer.Argument(metavar="TEXT...", help="Text files, UTF-8: learn the next token.")]
PairsFile = Annotated[Path | None, options.file("--pairs", "Learn to translate, from lines of source<tab>target.")]
Repeated = Annotated[bool, flag("--repeated", "Learn induction, from random letters that come again and again.")]
Out = Annotated[Path | None, options.out("none, needed")]
Steps = Annotated[int | None, options.steps("2000; of --pairs 8000, of --repeated 1200")]
Resume = Annotated[bool, flag("--resume", "Go on with the run in --out where it stopped, or start it.")]
Config = Annotated[Path | None, options.file("--config", "Read settings: .toml or .json.")]
Set = Annotated[
    list[str] | None, said("--set", "NAME=VALUE", "Change one setting, such as layers=6; may be given again.")
]
Watch = Annotated[str | None, said("--watch", "SENTENCE", "Keep the traces of a sentence, of pairs source<tab>target.")]
Prompt = Annotated[str | None, said("--prompt", "TEXT", "Begin the samples that are written on the way so.")]
Board = Annotated[bool, flag("--tensorboard", "Write for TensorBoard too (extra tensorboard).")]


def train(
    files: Files = None,
    pairs: PairsFile = None,
    repeated: Repeated = False,
    out: Out = None,
    steps: Steps = None,
    resume: Resume = False,
    config: Config = None,
    settings: Set = None,
    watch: Watch = None,
    prompt: Prompt = None,
    tensorboard: Board = False,
) -> None:
    """Train on texts, on pairs (--pairs), or on letters that come again (--repeated).

    docs/training.md has more.
    """
    sources = bool(files) + (pairs is not None) + repeated
    if sources != 1:
        given = "several of them" if sources else "none"
        raise RegardError(f"train: needs text files, --pairs FILE, or --repeated; given {given}")
    if out is None:
        raise RegardError("--out is needed: the folder that the run is written to")
    sources_read = files or ([] if pairs is None else [pairs])
    for file in sources_read:
        check_readable(file)
    changes = setting_changes(config, settings or (), steps)
    with_changes(starting_settings(files or [], pairs), changes)
    is_main = os.environ.get("RANK", "0") == "0"  # of several processes the first one talks, and makes the folder
    if is_main:
        check_place_for_run(out, resume=resume)

    if is_main and not sys.stdout.isatty():  # through a pipe the first line comes at once
        read = ", ".join(map(str, sources_read))
        print("drawing repeated letters" if repeated else f"reading {read}", flush=True)

    # torch is imported only now: help and bad input do not wait for it
    from regard.cli.train_progress import TrainArguments, train_and_follow
    from regard.train.run import RunOptions

    options = RunOptions(resume, watch, prompt)
    train_and_follow(TrainArguments(files or [], pairs, out, changes, options, tensorboard))
