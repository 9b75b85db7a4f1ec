"""`regard check`: compare regard's numbers for one model with the model's own code."""

from typing import Annotated

import typer

from regard.cli import options
from regard.cli.file_options import writes
from regard.cli.options import said
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.source import check_text_arguments

ModelArgument = Annotated[
    str | None, typer.Argument(metavar="[MODEL]", help="A name, a folder or a file, as --model takes them elsewhere.")
]
CheckTexts = Annotated[
    list[str] | None,
    said("--text", "TEXT", "Check on this text. May be given several times.", "three short texts and a long one"),
]


@writes("html", "csv", "json")
def check(
    model: ModelArgument = None, texts: CheckTexts = None, seed: options.Seed = 0, outputs: Outputs = NOTHING
) -> None:
    """Compare what regard computes for a model with the model's own code, on this machine.

    Exit code 0 if every measured check passes, 1 if one fails.
    """
    check_text_arguments("text", texts or [])
    outputs.check()

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles
    from regard.cli.start import load_model
    from regard.cli.telling import tell
    from regard.questions.check.check import check as measure

    screens = consoles(outputs.json)
    with screens[1].status("loading the model …") as status:
        opened = load_model(model)
        found = measure(opened, texts, seed=seed, progress=lambda done, of: status.update(f"checking … {done} of {of}"))
    tell(found, outputs, screens)
    if not found.holds:
        raise typer.Exit(1)
