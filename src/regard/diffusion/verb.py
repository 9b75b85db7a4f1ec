"""Define `regard paint`: generate an image with diffusers, and show its attention to each word."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options
from regard.cli.options import number
from regard.cli.outputs import NOTHING, Outputs, report, writes
from regard.cli.start import settle
from regard.cli.verb import Verb
from regard.errors import RegardError
from regard.model_files.folder import PIPELINE

MOST = 500


@writes("figure", "html", "csv", "json")
def paint(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of a diffusers text-to-image pipeline.")],
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="Text to paint.")],
    samples: Annotated[int, number("--samples", least=1, most=MOST)] = 1,
    steps: Annotated[int, number("--steps", least=1, most=MOST)] = 20,
    seed: options.Seed = 0,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Generate an image from a text with a diffusers pipeline, and show where the image attends to each word."""
    if not (folder / PIPELINE).is_file():
        raise RegardError(
            f"{str(folder)!r} is not a diffusers pipeline: pass a folder with {PIPELINE}, as save_pretrained writes it"
        )
    from regard.diffusion.answer import prompt_painting
    from regard.diffusion.pipeline import load_pipeline

    settle()
    result = prompt_painting(load_pipeline(folder), prompt, steps=steps, samples=samples, seed=seed)
    report(result, outputs, everything=everything)


PAINT = Verb(
    paint, "Generate an image and show where it attends to each word.", takes_dtype=False,
    heading="Generate",
    examples=('paint pipeline/ "a cat on the mat" --steps 30',
              'paint pipeline/ "a cat on the mat" --html painted.html'),
)  # fmt: skip
