"""`regard paint`: a line of words as pictures, where each word is looked at, and what that is worth."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options
from regard.cli.file_options import writes
from regard.cli.options import number
from regard.cli.outputs import NOTHING, PICTURES, Outputs
from regard.errors import RegardError
from regard.train.scene_words import EXAMPLE, read_scene

MOST = 500
Folder = Annotated[Path | None, typer.Argument(metavar="RUN", help="A run of regard train --painter.")]
Line = Annotated[str | None, typer.Argument(metavar="TEXT", help=f'Two digits in two corners: "{EXAMPLE}".')]
Samples = Annotated[int, number("--samples", "How often to paint it, each time from other noise.")]


@writes("figure", "html", "csv", "json", pictures=(*PICTURES, ".gif"))
def paint(
    run: Folder = None,
    text: Line = None,
    samples: Samples = 8,
    seed: options.Seed = 0,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Paint what a line of words says, and show which word painted what: heat, keys exchanged, edges cut.

    --figure draws a film of the steps where the file ends in .gif.
    """
    if run is None or text is None:
        raise RegardError(f'paint: needs a run and a line: regard paint RUN "{EXAMPLE}"')
    if not run.is_dir():
        raise RegardError(f"no folder {str(run)!r}: needs a run, which regard train --painter writes")
    scene = read_scene(text)
    if not 1 <= samples <= MOST:
        raise RegardError(f"--samples: given {samples}, needs 1 to {MOST}")
    outputs.check()

    # torch is imported only now: help and bad input do not wait for it
    from regard.cli.console import consoles
    from regard.cli.start import settle
    from regard.cli.telling import tell

    settle()  # scikit-learn needs scipy, which a command does without at its start
    from regard.questions.paint.answer import painting_of

    found = painting_of(run, scene, samples=samples, seed=seed)
    tell(found, outputs, consoles(outputs.json), everything=everything)
