"""`regard map`: the whole attention matrix of one layer over a long text, in numbers and as a picture."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from regard.checks import from_zero
from regard.cli import options
from regard.cli.options import Selection, number
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.start import load_model
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
    far: Annotated[int, number("--far")] = 64,
    window: options.Window = None,
    stride: options.Stride = None,
    everything: options.All = False,
    open_file: options.OpenFile = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Show a layer's whole attention matrix for a long text: the most attended tokens and the strongest long links.

    --save stores only the layer shown.
    """
    given = LongText(file, model, window, stride, open_file)
    given.check(layer, saved=outputs.save.file is not None, page=outputs.html.file is not None)
    chosen = Selection(layer, head, top)
    chosen.check()
    if far < 0:
        raise RegardError(f"--far: given {far}, needs 0 or more")
    outputs.check()
    text = given.read()

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.telling import consoles, tell

    screens = consoles(outputs.json)
    found = given.matrix(text, layer, head, top=top, far=far, console=screens[1])
    if layer is None:
        outputs = replace(outputs, save=replace(outputs.save, layers=[found.layer]))
    tell(found, outputs, screens, everything=everything, traces=found.traces[0] if found.traces else None)


@dataclass(frozen=True)
class LongText:
    """file: in UTF-8, read by model, whole or in windows; or opened: a file of one saved trace."""

    file: Path | None = None
    model: str | None = None
    window: int | None = None
    stride: int | None = None
    opened: Path | None = None

    def check(self, layer: int | None, *, saved: bool, page: bool = False) -> None:
        """Refuse, before the file is read, no text at all and options that exclude each other.

        layer: None where one is to be chosen. saved: with --save. page: with --html.
        """
        if self.file is None and self.opened is None:
            raise RegardError("no file given: regard map FILE --layer N")
        if self.opened is not None:
            for option, given in (("FILE", self.file), ("--window", self.window), ("--model", self.model)):
                if given is not None:
                    raise RegardError(f"--open and {option}: the saved trace is shown as it is, give one of them")
        if self.window is not None and layer is None:
            raise RegardError("--window needs --layer: choose a layer, such as --layer 2")
        if self.stride is not None and self.window is None:
            raise RegardError("--stride needs --window: it sets how far each window starts after the previous one")
        if saved and self.window is not None:
            raise RegardError("--save: windows are read one at a time and not kept, so there is no trace to save")
        if page and self.window is not None:
            raise RegardError("--html: windows are read one at a time and not kept: use regard see --window")

    def read(self) -> str:
        """The file's text, "" where a saved trace is looked at instead."""
        return "" if self.file is None else read_file_argument(self.file)

    def matrix(
        self, text: str, layer: int | None, head: int | None, *, top: int, far: int, console: Console
    ) -> "Matrix":
        """Go through the matrix of one layer, with progress bars on the console, as `questions.map.whole.matrix` does.

        Windows are not held: their answer has no traces.
        """
        from regard.capture.options import report_layers_of_pass
        from regard.models.states import count_layers
        from regard.questions.map.whole import chosen_layer, matrix
        from regard.questions.map.windowed import windowed

        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
            if self.opened is not None:
                looking = bars.add_task("Going through the matrix", total=1)
                trace = trace_of_open_option(self.opened)
                layer, reason = chosen_layer(trace, layer, head)
                found = matrix(trace, layer, head, top=top, far=far, progress=partial(bars.advance, looking))
                return replace(found, why=reason)
            loading = bars.add_task("Loading the model", total=None)
            model = load_model(self.model)
            layer = None if layer is None else from_zero("layer", layer, count_layers(model), f"{model.name} has")
            bars.update(loading, total=1, completed=1)
            tracing = bars.add_task("Reading and tracing", total=1)
            looking = bars.add_task("Going through the matrix", total=1)
            if self.window is None:
                with report_layers_of_pass(model.model, partial(bars.advance, tracing)):
                    trace = model.trace(text, layers=None if layer is None else [layer], logits=False)
                bars.update(tracing, completed=1)
                layer, reason = chosen_layer(trace, layer, head)
                found = matrix(trace, layer, head, top=top, far=far, progress=partial(bars.advance, looking))
                return replace(found, why=reason)

            def step(share: float) -> None:
                bars.advance(tracing, share)
                bars.advance(looking, share)

            assert layer is not None  # see `check`
            plan, windows = model.stream(text, window=self.window, stride=self.stride, layers=[layer])
            return windowed(plan, windows, layer, head, top=top, far=far, progress=step)


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
