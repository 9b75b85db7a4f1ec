"""`regard map`: the whole attention matrix of one layer over a long text, in numbers and as a picture."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import clock, options
from regard.cli.early_checks import EarlyChecks, no_windows
from regard.cli.file_options import writes
from regard.cli.long_text import LongText
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.page_file import PageFile
from regard.cli.selection import Selection
from regard.cli.source import Source
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.web.page import Page

TextFile = Annotated[Path | None, typer.Argument(metavar="FILE", help="A text file in UTF-8.")]
Layer = Annotated[
    int | None, options.number("N", "The layer, from 0 (-1: the last); else one is chosen. --window requires it.")
]
Head = Annotated[int | None, options.number("N", "One head of it; by default the mean of all.")]
Top = Annotated[int, options.number("K", "How many tokens and pairs of tokens to name.")]
Far = Annotated[int, options.number("N", "Name pairs of tokens more than N tokens apart.")]
OpenTrace = Annotated[Path | None, options.file("--open", "Look at a saved trace, without the model: no text then.")]


@writes("figure", "json", "html of traces", "save", said={"save_file": "Write the trace of that layer: .safetensors."})
def map_file(
    file: TextFile = None,
    model: options.ModelName = None,
    layer: Layer = None,
    head: Head = None,
    top: Top = 10,
    far: Far = 64,
    window: options.Window = None,
    stride: options.Stride = None,
    everything: options.All = False,
    open_file: OpenTrace = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Show one layer's whole attention matrix of a long text: what receives, what is far apart, a picture."""
    given = LongText(file, model, window, stride, open_file)
    given.check(layer, saved=outputs.save.file is not None, page=outputs.html.file is not None)
    chosen = Selection(layer, head, top)
    chosen.check()
    if far < 0:
        raise RegardError(f"--far: given {far}, needs 0 or more")
    outputs.check()
    text = given.read()
    early = EarlyChecks.of(Source(model=model, file=open_file))
    early.check(chosen, page=outputs.html)
    if window is not None:
        early.check_kind(True, no_windows)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.views.json import matrix_data
    from regard.views.terminal.matrix import show_matrix, show_matrix_shortly

    console, errors = consoles(outputs.json)
    found, trace, reason = given.matrix(text, layer, head, top=top, far=far, console=errors)
    if layer is None:
        outputs = replace(outputs, save=replace(outputs.save, layers=[found.layer]))

    def draw(file: Path) -> list[str]:
        from regard.views.figures.matrix import draw_matrix

        return draw_matrix(found, file, reason)

    def page(html: PageFile) -> "Page":
        from regard.explain.findings.matrix import matrix_findings
        from regard.web.assemble import Opening, page_of

        assert trace is not None  # see `LongText.check`
        choice = html.choice() if html.layers is not None else replace(html, layers=[found.layer]).choice()
        opening = Opening("map", found.layer, found.head)
        return page_of(trace, choice, opening, findings=matrix_findings(found))

    notes = outputs.write(traces=trace, draw=draw, data=lambda: matrix_data(found), page=page)
    (show_matrix if everything else show_matrix_shortly)(found, str(file or open_file), console, clock.seconds())
    if reason:
        console.print(reason, style="dim", markup=False)
    finish(console, errors, outputs.files, notes)
