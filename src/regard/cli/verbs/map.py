"""`regard map`: the whole attention matrix of one layer over a long text, in numbers and as a picture."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from regard.checks import from_zero
from regard.cli import options
from regard.cli.options import number
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.start import load_model
from regard.cli.telling import consoles, tell
from regard.errors import RegardError
from regard.files import check_readable

if TYPE_CHECKING:
    from regard.questions.map.answer import Matrix
    from regard.trace.trace import Trace


@writes("figure", "json", "html of traces", "save")
def map_file(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Text file in UTF-8.")] = None,
    model: options.ModelName = None,
    layer: Annotated[int | None, number("--layer", "chosen for the text; a note says why")] = None,
    head: options.OneOfHeads = None,
    top: options.Top = 10,
    far: Annotated[int, number("--far", least=0)] = 64,
    window: options.Window = None,
    stride: options.Stride = None,
    everything: options.All = False,
    open_file: options.OpenFile = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Show a layer's whole attention matrix for a long text: the most attended tokens and the strongest long links.

    --save stores only the layer shown.
    """
    if file is None and open_file is None:
        raise RegardError("no file given: regard map FILE --layer N")
    for option, given in (("FILE", file), ("--window", window), ("--model", model)):
        if open_file is not None and given is not None:
            raise RegardError(f"--open and {option}: the saved trace is shown as it is, give one of them")
    if window is not None and layer is None:
        raise RegardError("--window needs --layer: choose a layer, such as --layer 2")
    if stride is not None and window is None:
        raise RegardError("--stride needs --window: it sets how far each window starts after the previous one")
    if window is not None and outputs.save.file is not None:
        raise RegardError("--save: windows are read one at a time and not kept, so there is no trace to save")
    if window is not None and outputs.html.file is not None:
        raise RegardError("--html: windows are read one at a time and not kept: use regard see --window")
    text = "" if file is None else read_file_argument(file)
    found = matrix_with_progress(
        text, open_file, model, layer, head, window, stride, top=top, far=far, console=consoles(outputs.json)[1]
    )
    if layer is None:
        outputs = replace(outputs, save=replace(outputs.save, layers=[found.layer]))
    tell(found, outputs, everything=everything, traces=found.traces[0] if found.traces else None)


def matrix_with_progress(
    text: str,
    opened: Path | None,
    model: str | None,
    layer: int | None,
    head: int | None,
    window: int | None = None,
    stride: int | None = None,
    *,
    top: int,
    far: int,
    console: Console,
) -> "Matrix":
    """Go through the matrix of one layer, with progress bars on the console, as `questions.map.whole.matrix` does.

    opened: a file of one saved trace, instead of a text. Windows are not held: their answer has no traces.
    """
    from regard.capture.options import report_layers_of_pass
    from regard.models.states import count_layers
    from regard.questions.map.whole import chosen_layer, matrix, windowed

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        if opened is None:
            loading = bars.add_task("Loading the model", total=None)
            loaded = load_model(model)
            layer = None if layer is None else from_zero("layer", layer, count_layers(loaded), f"{loaded.name} has")
            bars.update(loading, total=1, completed=1)
            tracing = bars.add_task("Reading and tracing", total=1)
        looking = bars.add_task("Going through the matrix", total=1)
        if window is not None:

            def step(share: float) -> None:
                bars.advance(tracing, share)
                bars.advance(looking, share)

            assert layer is not None  # as --window needs it
            plan, windows = loaded.stream(text, window=window, stride=stride, layers=[layer])
            return windowed(plan, windows, layer, head, top=top, far=far, progress=step)
        if opened is not None:
            trace = trace_of_open_option(opened)
        else:
            with report_layers_of_pass(loaded.model, partial(bars.advance, tracing)):
                trace = loaded.trace(text, layers=None if layer is None else [layer], logits=False)
            bars.update(tracing, completed=1)
        layer, reason = chosen_layer(trace, layer, head)
        found = matrix(trace, layer, head, top=top, far=far, progress=partial(bars.advance, looking))
        return replace(found, why=reason)


def read_file_argument(file: Path) -> str:
    """A file's text, without the mark of its encoding (BOM) where it begins with one."""
    from regard.text.tokens import check_text

    check_readable(file)
    found = file.read_bytes()
    try:
        text = found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # What was decoded may begin after a mark of three bytes, from which the position is counted.
        place = error.start + len(found) - len(error.object)
        line = found.count(b"\n", 0, place) + 1
        raise RegardError(
            f"{str(file)!r} is not UTF-8: byte 0x{found[place]:02x} at {place} (line {line}), {error.reason}"
        ) from error
    return check_text(text, repr(str(file)))


def trace_of_open_option(file: Path) -> "Trace":
    """The one trace of a file, of one text. Raises RegardError where it holds several, or one of an encoder-decoder."""
    from regard.trace.file import open_traces
    from regard.trace.trace import PairTrace

    each = open_traces(file)
    if len(each) != 1:
        raise RegardError(f"--open: {str(file)!r} holds {len(each)} traces, but map shows one: save that trace alone")
    if isinstance(each[0], PairTrace):
        raise RegardError(
            f"--open: {str(file)!r} comes from an encoder-decoder, but map shows one text: use regard see"
        )
    return each[0]
