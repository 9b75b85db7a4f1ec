"""`regard train`: a transformer of one's own, from texts or from sentence pairs."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.options import whole_number
from regard.cli.progress_lines import ProgressLines
from regard.errors import RegardError
from regard.files import check_readable

Files = Annotated[list[Path] | None, typer.Argument(metavar="TEXT...", help="Text files, UTF-8: learn the next token.")]
PairsFile = Annotated[Path | None, typer.Option("--pairs", metavar="FILE", help="Source<tab>target lines: translate.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="RUN", help="The run's folder, needed.")]
Steps = Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="How many updates.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where RUN stopped, or start it.")]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings: .toml or .json.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting: --set layers=6.")]
Watch = Annotated[str | None, typer.Option(metavar="SENTENCE", help="Keep its traces (pairs: source<tab>target).")]
Prompt = Annotated[str | None, typer.Option(metavar="TEXT", help="What samples on the way begin with.")]
Board = Annotated[bool, typer.Option("--tensorboard", help="Also write for TensorBoard (extra tensorboard).")]


def train(
    files: Files = None,
    pairs: PairsFile = None,
    out: Out = None,
    steps: Steps = None,
    resume: Resume = False,
    config: Config = None,
    settings: Set = None,
    watch: Watch = None,
    prompt: Prompt = None,
    tensorboard: Board = False,
) -> None:
    """Train a transformer on texts (next token) or on pairs (translation); every setting is in docs/training.md."""
    if bool(files) == (pairs is not None):
        raise RegardError("train: needs text files, or --pairs FILE; given " + ("both" if files else "neither"))
    if out is None:
        raise RegardError("--out is needed: the folder that the run is written to")
    for file in (*(files or ()), *((pairs,) if pairs is not None else ())):
        check_readable(file)
    changes = _changes(config, settings, steps)

    lead = os.environ.get("RANK", "0") == "0"  # of several processes the first one talks
    shown = sys.stdout.isatty() and sys.stderr.isatty()  # then a progress bar shows how far it is
    with ProgressLines(alone=lead and not shown) as telling:
        given = [*(files or ()), *(() if pairs is None else (pairs,))]
        if lead:
            telling.say(f"reading {', '.join(map(str, given))}")
        _train(files or [], pairs, out, changes, resume, watch, prompt, tensorboard, telling)


def _train(
    files: list[Path],
    pairs: Path | None,
    out: Path,
    changes: dict[str, Any],
    resume: bool,
    watch: str | None,
    prompt: str | None,
    tensorboard: bool,
    telling: ProgressLines,
) -> None:
    """Train, in a team or alone; the arguments are those of `train`, and look right."""
    # torch is imported only now: help and bad input do not wait for it
    from regard.cli.train_progress import board_kind, follow
    from regard.train.distributed import team
    from regard.train.run import ready_for_pairs, ready_for_texts
    from regard.train.run_folder import ABOUT, read_about
    from regard.train.settings import Settings, with_changes

    plan = Settings() if pairs is None else Settings.for_pairs()
    if resume and (out / ABOUT).is_file():  # what is not given anew stays as the run has it
        about = read_about(out)
        plan, watch, prompt = about.settings, watch or about.watch, prompt or about.prompt
    chosen = with_changes(plan, changes)
    board = board_kind() if tensorboard else None
    telling.doing("reading and tokenising")
    with team() as joined:
        if joined is not None and joined.rank > 0:  # the first one makes the folder, the others find it made
            joined.wait()
            resume = True
        lead = joined is None or joined.rank == 0
        asked: dict[str, Any] = {"resume": resume, "watch": watch, "prompt": prompt, "lead": lead}
        if pairs is None:
            ready = ready_for_texts(files, out, chosen, **asked)
        else:
            ready = ready_for_pairs(pairs, out, chosen, **asked)
        if joined is not None and joined.rank == 0:
            joined.wait()
        follow(ready, board=board, team=joined, telling=telling)


def _changes(config: Path | None, settings: list[str] | None, steps: int | None) -> dict[str, Any]:
    """Settings by name: of the file, then of --set, then of --steps."""
    from regard.train.settings import read_settings

    changes: dict[str, Any] = {} if config is None else read_settings(config)
    for each in settings or ():
        name, equals, text = each.partition("=")
        if not equals or not name.strip():
            raise RegardError(f"--set {each!r}: needs NAME=VALUE")
        changes[name.strip()] = _value(text.strip())
    named = {each.partition("=")[0].strip() for each in settings or ()}
    if steps is not None and "steps" in named and changes["steps"] != steps:
        raise RegardError(f"--steps {steps} and --set steps={changes['steps']}: give one of both")
    return changes | ({} if steps is None else {"steps": steps})


def _value(text: str) -> Any:
    """A setting's value as it was meant: a number, true, false, none, or a word."""
    known = {"true": True, "false": False, "none": None}
    if text.lower() in known:
        return known[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
