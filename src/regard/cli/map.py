"""`regard map`: the whole attention matrix of one layer over a long text, in numbers and as a picture."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.checks import from_zero
from regard.cli import clock
from regard.cli.early_checks import EarlyChecks, no_windows
from regard.cli.options import FigureFile, JsonFile, ModelName, Stride, Window, whole_number
from regard.cli.outputs import Outputs, TraceFile
from regard.cli.source import Source
from regard.errors import RegardError

TextFile = Annotated[Path | None, typer.Argument(metavar="FILE", help="A text file in UTF-8.")]
Layer = Annotated[
    int | None,
    typer.Option(
        parser=whole_number,
        metavar="N",
        help="The layer, from 0 (-1: the last); else one is chosen. --window requires it.",
    ),
]
Head = Annotated[
    int | None, typer.Option(parser=whole_number, metavar="N", help="One head of it; by default the mean of all.")
]
Top = Annotated[
    int, typer.Option(parser=whole_number, metavar="K", help="How many tokens and pairs of tokens to name.")
]
Far = Annotated[
    int, typer.Option(parser=whole_number, metavar="N", help="Name pairs of tokens more than N tokens apart.")
]
OpenTrace = Annotated[
    Path | None, typer.Option("--open", metavar="FILE", help="Look at a saved trace, without the model: no text then.")
]
SaveTrace = Annotated[
    Path | None, typer.Option("--save", metavar="FILE", help="Write the trace of that layer: .safetensors.")
]


def map_file(
    file: TextFile = None,
    model: ModelName = None,
    layer: Layer = None,
    head: Head = None,
    top: Top = 10,
    far: Far = 64,
    window: Window = None,
    stride: Stride = None,
    figure: FigureFile = None,
    json_file: JsonFile = None,
    open_file: OpenTrace = None,
    save_file: SaveTrace = None,
) -> None:
    """Show one layer's whole attention matrix of a long text: what receives, what is far apart, a picture."""
    if file is None and open_file is None:
        raise RegardError("no file given: regard map FILE --layer N")
    if open_file is not None:
        for option, given in (("FILE", file), ("--window", window), ("--model", model)):
            if given is not None:
                raise RegardError(f"--open and {option}: the saved trace is looked at as it is, give one of both")
    if layer is None and window is not None:
        raise RegardError(
            "--layer is needed with --window: windows go by one after another, none is there to choose by"
        )
    outputs = Outputs(figure, json_file, TraceFile(save_file))
    _check(top, far, window, stride, outputs)
    text = "" if file is None else read_text(file)
    early = EarlyChecks.of(Source(model=model, file=open_file))
    early.check_numbers(layer, head)
    if window is not None:
        early.check_kind(True, no_windows)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from regard.capture.progress import layers_run
    from regard.cli.console import consoles, finish
    from regard.explain.matrix import matrix
    from regard.explain.windowed_matrix import windowed
    from regard.models.load import load
    from regard.views.json import matrix_data
    from regard.views.terminal.matrix import show_matrix

    console, errors = consoles(json_file)
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bars:
        if open_file is None:
            loading = bars.add_task("loading the model", total=None)
            opened = load(model)
            layer, head = _numbers(opened, layer, head)
            bars.update(loading, total=1, completed=1)
            tracing = bars.add_task("reading and tracing", total=1)
        looking = bars.add_task("going through the matrix", total=1)
        trace, reason = None, ""
        if window is None:
            if open_file is not None:
                trace = _saved(open_file)
            else:
                with layers_run(opened.model, lambda share: bars.advance(tracing, share)):
                    trace = opened.trace(text, layers=None if layer is None else [layer], logits=False)
                bars.update(tracing, completed=1)
            if layer is None:
                layer, reason = _chosen(trace, head)
                outputs = replace(outputs, save=replace(outputs.save, layers=[layer]))
            found = matrix(trace, layer, head, top=top, far=far, progress=lambda share: bars.advance(looking, share))
        else:

            def step(share: float) -> None:
                bars.advance(tracing, share)
                bars.advance(looking, share)

            assert layer is not None
            plan, windows = opened.stream(text, window=window, stride=stride, layers=[layer])
            found = windowed(plan, windows, layer, head, top=top, far=far, progress=step)

    def draw(file: Path) -> list[str]:
        from regard.views.figures.matrix import draw_matrix

        return draw_matrix(found, file, reason)

    notes = outputs.write(traces=trace, draw=draw, data=lambda: matrix_data(found))
    show_matrix(found, str(file or open_file), console, clock.seconds())
    if reason:
        console.print(f"layer {layer} {reason}", style="dim", markup=False)
    finish(console, errors, outputs.files, notes)


def read_text(file: Path) -> str:
    """A file's text, without the mark of its encoding (BOM) where it begins with one.

    Raises:
        RegardError: there is no such file, it cannot be read, is empty or blank, or is not UTF-8: the byte is named.
    """
    from regard.text.tokens import check_text

    try:
        found = file.read_bytes()
    except OSError as error:
        raise RegardError(f"cannot read {str(file)!r}: {error.strerror or error}") from error
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


def _saved(file: Path) -> Any:
    """The one trace of a file, of one text."""
    from regard.trace.file import open as read

    traces = read(file)
    if isinstance(traces, list) and len(traces) == 1:
        (traces,) = traces
    if isinstance(traces, list):
        raise RegardError(f"--open: {str(file)!r} holds {len(traces)} traces, map looks at one: save that alone")
    if hasattr(traces, "encoder"):
        raise RegardError(f"--open: {str(file)!r} is of an encoder-decoder, map looks at one text: see shows both")
    return traces


def _check(
    top: int,
    far: int,
    window: int | None,
    stride: int | None,
    outputs: Outputs,
) -> None:
    """Refuse, before the file is read, numbers out of range, options that exclude each other, and bad output files."""
    for option, given, least in (("--top", top, 1), ("--far", far, 0)):
        if given < least:
            raise RegardError(f"{option}: given {given}, needs {least} or more")
    if stride is not None and window is None:
        raise RegardError("--stride needs --window: it says how far one window is past the last")
    if outputs.save.file is not None and window is not None:
        raise RegardError("--save: windows are looked at one after another and not held, there is no trace to save")
    outputs.check()


def _chosen(trace: Any, head: int | None) -> tuple[int, str]:
    """The layer that says most, and why: the first that is there where none says anything."""
    from regard.explain.attended import check_head, there
    from regard.explain.sinks import sinks
    from regard.explain.specific_weights import most_specific, specific_weights
    from regard.views.choice import why

    head = None if head is None else check_head(trace, head)
    best = most_specific(specific_weights(trace, None, [sink.token for sink in sinks(trace)], head=head))
    if best is not None:
        return best.layer, f"{why(best, trace.tokens)}, in head {best.head}"
    held = there(trace.attention)
    if not held:
        raise RegardError(f"the trace of {trace.status.model} holds no attention")
    return held[0], ""


def _numbers(opened: Any, layer: int | None, head: int | None) -> tuple[int | None, int | None]:
    """Layer and head counted from 0, held against the model's config before the text is traced."""
    config = opened.model.config
    layers, heads = (getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    if layer is None:
        pass
    elif isinstance(layers, int):
        layer = from_zero("layer", layer, layers, f"{opened.name} has")
    elif layer < 0:
        raise RegardError(f"layer {layer}: {opened.name} does not tell how many layers it has, count them from 0")
    if head is not None and isinstance(heads, int):
        head = from_zero("head", head, heads, f"{opened.name} has")
    return layer, head
