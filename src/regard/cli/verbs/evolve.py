"""`regard evolve`: how the attention of a watched sentence formed while a model was trained."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options
from regard.cli.options import option
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.errors import RegardError
from regard.train.watched import check_watched_traces


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
        raise RegardError(f"no folder {str(run)!r}: needs a run that was trained with --watch")
    outputs.check()
    check_watched_traces(run)

    # torch is imported only now: help and bad input do not wait for it
    from regard.cli.telling import consoles, tell
    from regard.questions.evolve.answer import evolution_of

    tell(evolution_of(run, layer, head, part=part), outputs, consoles(outputs.json), everything=everything)
