"""`regard paint`: a text as pictures, by a painter of ours or a pipeline, and where each word is looked at."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options
from regard.cli.file_options import writes
from regard.cli.options import number
from regard.cli.outputs import NOTHING, PICTURES, Outputs
from regard.errors import RegardError
from regard.model_files.folder import PIPELINE
from regard.train.scene_words import EXAMPLE, read_scene

MOST, STEPS = 500, 20
Folder = Annotated[
    Path | None,
    typer.Argument(metavar="RUN", help="A run of regard train --painter, or the folder of a pipeline of diffusers."),
]
Line = Annotated[str | None, typer.Argument(metavar="TEXT", help=f'Of a run, two digits in two corners: "{EXAMPLE}".')]
Samples = Annotated[int | None, number("--samples", "How often to paint it, each time from other noise (8; 1).")]
Steps = Annotated[int | None, options.steps("20, of a pipeline alone")]


@writes("figure", "html", "csv", "json", pictures=(*PICTURES, ".gif"))
def paint(
    run: Folder = None,
    text: Line = None,
    samples: Samples = None,
    steps: Steps = None,
    seed: options.Seed = 0,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Paint what a text says, and show where the picture looks at each word.

    With a run of regard train --painter also what exchanging words' keys and cutting their edges does, and a film of
    the steps where --figure ends in .gif. With a pipeline of diffusers the weights that it computes with.
    """
    if run is None or text is None:
        raise RegardError(f'paint: needs a run and a line: regard paint RUN "{EXAMPLE}"')
    if not run.is_dir():
        raise RegardError(f"no folder {str(run)!r}: needs a run, which regard train --painter writes, or a pipeline's")
    pipeline = (run / PIPELINE).is_file()
    scene = None if pipeline else read_scene(text)
    if steps is not None and not pipeline:
        raise RegardError(
            "--steps: a run of regard train --painter paints in 20, a pipeline in as many as are asked for"
        )
    if pipeline and outputs.figure is not None and outputs.figure.suffix.lower() == ".gif":
        raise RegardError(f"--figure: given {str(outputs.figure)!r}, of a pipeline needs one of {', '.join(PICTURES)}")
    for name, given in (("--samples", samples), ("--steps", steps)):
        if given is not None and not 1 <= given <= MOST:
            raise RegardError(f"{name}: given {given}, needs 1 to {MOST}")
    outputs.check()

    # torch is imported only now: help and bad input do not wait for it
    from regard.cli.console import consoles
    from regard.cli.start import settle
    from regard.cli.telling import tell
    from regard.display.answer import Answer

    settle()  # scikit-learn needs scipy, which a command does without at its start
    found: Answer
    if scene is None:
        from regard.diffusion.pipeline import load_pipeline
        from regard.questions.prompt.answer import prompt_painting

        found = prompt_painting(load_pipeline(run), text, steps=steps or STEPS, samples=samples or 1, seed=seed)
    else:
        from regard.nn.folder import read_painter
        from regard.questions.paint.answer import painting

        found = painting(read_painter(run), scene, samples=samples or 8, seed=seed)
    tell(found, outputs, consoles(outputs.json), everything=everything)
