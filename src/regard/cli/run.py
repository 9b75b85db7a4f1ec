"""Define `regard run`: run a Python program under `watch`, and show the attention that it computed."""

import math
import os
import runpy
import sys
import warnings
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli import start
from regard.cli.outputs import NOTHING, Outputs, consoles, print_written_files, writes
from regard.cli.verb import Verb
from regard.errors import RegardError
from regard.files import JSON_VERSION, STANDARD_OUTPUT, check_readable, plain_json_values, write_json

if TYPE_CHECKING:
    from regard.capture.watching.seen import WatchedCalls

Script = Annotated[Path, typer.Argument(metavar="SCRIPT", help="Your Python program.", show_default=False)]
Arguments = Annotated[list[str] | None, typer.Argument(metavar="ARGUMENT...", help="Arguments of the program.")]
MAX_WRITTEN_WEIGHTS = 10_000  # --json has the weights of calls up to this size
KEPT_CALLS = 4  # last calls kept per path, so that memory doesn't grow with a program's steps


@writes("figure", "html", "json")
def run(script: Script, arguments: Arguments = None, outputs: Outputs = NOTHING) -> None:
    """Run a Python program and list its attention calls, each with its path, kind, shape, file and line.

    An attention file (.safetensors) is shown in the same way. --figure draws each head of a single call, or the
    mean of the heads of each call. The exit code is the program's own, or 2 if it computed no attention.
    """
    check_readable(script, "run:")
    if script.suffix == ".ipynb":
        raise RegardError(f"run: {script} is a notebook: save it as a script, or put regard.watch() around a cell")
    opened: Any = {}
    if script.suffix == ".safetensors":
        from regard.trace.file import open as open_file

        if arguments:
            raise RegardError(f"run: put options before an attention file: regard run {' '.join(arguments)} {script}")
        if not isinstance(opened := open_file(script), dict):
            raise RegardError(f"run: {str(script)!r} has traces: show them with regard see --open {script}")
    start.undo_begin()
    from regard.capture.watching.watch import watch

    code = 0
    try:
        # with `--json -`, only JSON goes to standard output
        printed = sys.stderr if outputs.json == STANDARD_OUTPUT else sys.stdout
        with watch(copy=any(outputs.files), keep=KEPT_CALLS) as watched, redirect_stdout(printed):
            watched.update(opened)
            code = 0 if opened else _run_script(script, arguments or [])
    except RegardError:
        if watched:
            raise
    if not watched and not code:
        raise watched.nothing_seen(f"run: {script} computed no attention", ". ")
    screen, errors = consoles(outputs.json)
    screen.print(repr(watched), markup=False, soft_wrap=True)
    if watched:
        from regard.views.save_page import put_together

        media: Any = {"draw": partial(_draw_calls, watched), "to_json": partial(_write_calls, watched)}
        calls = SimpleNamespace(**media, page=lambda _: put_together(watched))
        notes = outputs.write(calls)
        print_written_files(screen, errors, outputs.files, notes)
    raise typer.Exit(code)


def _run_script(script: Path, arguments: list[str]) -> int:
    """Run a script like `python SCRIPT ARGUMENT...`. If it fails, print its traceback. Returns its exit code."""
    path = str(script.absolute())  # the script may change the working directory
    os.environ["MPLBACKEND"] = "Agg"  # figure windows would block until closed
    warnings.filterwarnings("ignore", ".*is non-interactive, and thus cannot be shown")
    before = sys.argv, sys.path, sys.stdout, sys.stderr
    sys.argv, sys.path = [str(script), *arguments], [str(Path(path).parent), *sys.path[1:]]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        return int(end.code or 0) if isinstance(end.code, int | None) else 1
    except BaseException as error:
        trace = error.__traceback__  # skip the frames of regard and runpy
        while trace is not None and trace.tb_frame.f_code.co_filename != path:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        sys.argv, sys.path, sys.stdout, sys.stderr = before
        sys.stdout.flush()
    return 0


def _write_calls(watched: "WatchedCalls", file: Path) -> None:
    """Write the watched calls to a JSON file, with the weights of small calls."""
    calls: list[dict[str, Any]] = []
    for call in watched.values():
        row = {"path": call.path, "nth": call.nth, "how": call.how, "shape": call.source.shape, "where": call.where}
        small = math.prod(call.source.shape) <= MAX_WRITTEN_WEIGHTS
        calls.append(row | {"weights": call.weights.dense() if small else None})
    others = {"passed_over": list(watched.others()), "notes": watched.notes}
    data = {"format": "regard run", "version": JSON_VERSION, "calls": calls, **others}
    write_json(plain_json_values(data), file, indent=1)


def _draw_calls(watched: "WatchedCalls", file: Path) -> list[str]:
    from regard.views.plot import write_plot_of_calls

    return write_plot_of_calls(watched, file)


RUN = Verb(
    run, "Run a Python program and show the attention it computed.", takes_dtype=False,
    heading="Look at attention", examples=("run net.py", "run --figure first.png net.py --seed 3"),
)  # fmt: skip
