"""`regard map`: the whole attention matrix of one layer over a long text, in numbers and as a picture."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options
from regard.cli.file_options import writes
from regard.cli.long_text import LongText
from regard.cli.options import number
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.selection import Selection
from regard.errors import RegardError


@writes("figure", "json", "html of traces", "save")
def map_file(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Text file in UTF-8.")] = None,
    model: options.ModelName = None,
    layer: Annotated[int | None, number("--layer", "the layer with the most specific weight")] = None,
    head: options.OneOfHeads = None,
    top: options.Top = 10,
    far: Annotated[int, number("--far")] = 64,
    window: options.Window = None,
    stride: options.Stride = None,
    everything: options.All = False,
    open_file: options.OpenFile = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Show a layer's whole attention matrix of a long text: the most attended tokens and the strongest long links.

    --save stores this layer only.
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
    from regard.cli.console import consoles
    from regard.cli.telling import tell

    screens = consoles(outputs.json)
    found = given.matrix(text, layer, head, top=top, far=far, console=screens[1])
    if layer is None:
        outputs = replace(outputs, save=replace(outputs.save, layers=[found.layer]))
    tell(found, outputs, screens, everything=everything, traces=found.traces[0] if found.traces else None)
