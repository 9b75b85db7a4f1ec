"""`regard evolve`: how the attention of a watched sentence formed while a model was trained."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import options
from regard.cli.early_checks import saved
from regard.cli.file_options import writes
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.page_file import PageFile
from regard.cli.selection import Selection
from regard.errors import RegardError
from regard.explain.part import check_part
from regard.train.watched import check_watched

if TYPE_CHECKING:
    from regard.web.page import Page

Run = Annotated[Path | None, typer.Argument(metavar="RUN", help="A run that was trained with --watch.")]
Part = Annotated[str | None, options.part("cross")]

PICTURES = (".png", ".svg", ".gif")


@writes("figure", "json", "html of traces", pictures=PICTURES)
def evolve(
    run: Run = None,
    layer: options.OneLayer = 0,
    head: options.OneOfHeads = None,
    part: Part = None,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Show how a watched sentence's attention and learned embeddings changed, step by step.

    --figure draws a film where the file ends in .gif.
    """
    if run is None:
        raise RegardError("no run given: regard evolve RUN --layer N --head N --figure F")
    if not run.is_dir():
        raise RegardError(f"no folder {str(run)!r}: needs a run that was trained with --watch")
    outputs.check()
    early = saved(check_watched(run)[0])
    early.check_numbers(Selection(layer, head), "there are")
    early.check_page(outputs.html)
    if early.model.pairs is not None:
        check_part(part, early.model.pairs)

    # torch is imported only now: help and bad input do not wait for it
    from regard.cli.console import consoles, finish
    from regard.explain.evolution import evolution
    from regard.train.samples import open_watched
    from regard.views.json import evolution_data
    from regard.views.terminal.evolution import show_evolution, show_evolution_shortly

    watched = open_watched(run)
    found = evolution(watched, layer, head, part=part)
    console, errors = consoles(outputs.json)

    def draw(file: Path) -> list[str]:
        from regard.views.figures.evolution import draw_evolution

        return draw_evolution(found, file)

    def page(html: PageFile) -> "Page":
        from regard.train.log import LOG, read_log
        from regard.train.run_folder import RUN_JSON, read_run_info
        from regard.web.evolution import evolution_page

        log = read_log(run) if (run / LOG).is_file() else []
        smoothing = read_run_info(run).settings.smoothing if (run / RUN_JSON).is_file() else 0.0
        return evolution_page(watched, found, html.choice(), log=log, smoothing=smoothing)

    notes = outputs.write(draw=draw, data=lambda: evolution_data(found), page=page)
    (show_evolution if everything else show_evolution_shortly)(found, console)
    finish(console, errors, outputs.files, notes)
