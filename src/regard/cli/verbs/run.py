"""`regard run`: run a Python program under `watch`, then show the attention that it computed."""

import math
import os
import runpy
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli import start
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.errors import RegardError
from regard.files import STANDARD_OUTPUT, check_readable

if TYPE_CHECKING:
    from regard.attention.recording import Call
    from regard.capture.watching.seen import Seen

Script = Annotated[Path, typer.Argument(metavar="SCRIPT", help="Your Python program.", show_default=False)]
Arguments = Annotated[list[str] | None, typer.Argument(metavar="ARGUMENT...", help="Its own arguments.")]
MAX_WRITTEN_WEIGHTS = 10_000  # of a call, in --json
MAX_DRAWN_HEADS, MAX_DRAWN_CELLS = 12, 64


@writes("figure", "json")
def run(script: Script, arguments: Arguments = None, outputs: Outputs = NOTHING) -> None:
    """Run a Python program and show the attention that it computed: path, kind, shape, file and line.

    --figure draws the program's first attention call. The exit code is the program's own, or 2 if it computed no
    attention.
    """
    outputs.check()
    check_readable(script, "run:")
    if script.suffix == ".ipynb":
        raise RegardError(f"run: {script} is a notebook: save it as a script, or put regard.watch() around a cell")
    start.leave_to_program()
    from regard.capture.watching.watch import HIDDEN, watch
    from regard.cli.telling import consoles, say_written_files

    code = 0
    try:
        # with `--json -` standard output is for JSON alone
        printed = sys.stderr if outputs.json == STANDARD_OUTPUT else sys.stdout
        with watch(copy=any(outputs.files)) as seen, redirect_stdout(printed):
            code = _execute(script, arguments or [])
    except RegardError:
        if seen:
            raise
    if not seen and not code:
        raise RegardError(". ".join([f"run: {script} computed no attention", *seen.others(), HIDDEN]))
    screen, errors = consoles(outputs.json)
    screen.print(repr(seen), markup=False, soft_wrap=True)
    if seen:
        first = next(iter(seen.values()))
        notes = outputs.write(draw=lambda file: _draw(first, file), data=lambda file: _write(seen, file))
        say_written_files(screen, errors, outputs.files, notes)
    raise typer.Exit(code)


def _execute(script: Path, arguments: list[str]) -> int:
    """Run a script as `python SCRIPT ARGUMENT...` does, print its traceback if it fails, and return its exit code."""
    path = str(script.absolute())  # it may change the working directory
    os.environ["MPLBACKEND"] = "Agg"  # windows would wait for someone to close them
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
        trace = error.__traceback__  # begins with the frames of regard and runpy
        while trace is not None and trace.tb_frame.f_code.co_filename != path:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        sys.argv, sys.path, sys.stdout, sys.stderr = before
        sys.stdout.flush()
    return 0


def _write(seen: "Seen", file: Path) -> None:
    """Write the table as JSON, with the weights of small calls."""
    from regard.display.answer import VERSION
    from regard.files import plain_json_values, write_json

    calls: list[dict[str, Any]] = []
    for call in seen.values():
        row = {"path": call.path, "nth": call.nth, "how": call.how, "shape": call.source.shape, "where": call.where}
        small = math.prod(call.source.shape) <= MAX_WRITTEN_WEIGHTS
        calls.append(row | {"weights": call.weights.dense() if small else None})
    others = {"passed_over": list(seen.others()), "notes": seen.notes}
    data = {"format": "regard run", "version": VERSION, "calls": calls, **others}
    write_json(plain_json_values(data), file, indent=1)


def _draw(call: "Call", file: Path) -> list[str]:
    """Draw the heads of a call for the first entry of its batch. Cells of long texts are means."""
    from regard.display.elements.canvas import write_figure
    from regard.display.panels import Heat
    from regard.display.picture import paint

    length, size = call.weights.shape[-2:]
    cells = min(length, MAX_DRAWN_CELLS), min(size, MAX_DRAWN_CELLS)
    weights = call.weights.dense() if cells == (length, size) else call.weights.pooled(*cells)
    heads = weights.reshape(-1, *weights.shape[-3:])[0] if weights.ndim > 2 else weights[None]
    rows, columns = (
        [str(n * whole // part) for n in range(part)] for whole, part in zip((length, size), cells, strict=True)
    )
    panels = [
        Heat(
            name=f"head {n}", title=f"head {n}", rows=rows, columns=columns, values=head.tolist(),
            axes=("query", "key"), unit="weight", picture=True,
        )
        for n, head in enumerate(heads[:MAX_DRAWN_HEADS])
    ]  # fmt: skip
    left_out = len(heads) - MAX_DRAWN_HEADS
    notes = [f"the first {MAX_DRAWN_HEADS} heads, {left_out} more are not drawn"] if left_out > 0 else []
    return [*notes, *write_figure(paint(panels, f"{call.path}, {Path(call.where).name}"), file)]
