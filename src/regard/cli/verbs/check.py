"""`regard check`: compare regard's numbers for one model with the model's own code."""

from typing import Annotated

import typer

from regard.cli import options
from regard.cli.options import option
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import check_text_arguments
from regard.cli.start import load_model
from regard.cli.telling import tell, waiting

ModelArgument = Annotated[
    str | None, typer.Argument(metavar="MODEL", help="Model folder, GGUF file or hub name. Default: all-MiniLM-L6-v2.")
]


@writes("html", "csv", "json")
def check(
    model: ModelArgument = None,
    texts: Annotated[list[str] | None, option("--text", "three short texts and a long text")] = None,
    seed: options.Seed = 0,
    outputs: Outputs = NOTHING,
) -> None:
    """Verify regard's results for a model against the model's own code, on this machine.

    The exit code is 0 if every check passes and 1 if any fails.
    """
    check_text_arguments("text", texts or [])
    from regard.questions.check.check import check as measure

    with waiting(outputs, "Loading the model …") as status:
        opened = load_model(model)
        found = measure(opened, texts, seed=seed, progress=lambda done, of: status.update(f"Checking … {done} of {of}"))
    tell(found, outputs)
    if not found.holds:
        raise typer.Exit(1)
