"""`regard check`: compare regard's numbers for one model with the model's own code."""

from typing import Annotated

import typer

from regard.cli import options
from regard.cli.options import option
from regard.cli.outputs import NOTHING, Outputs, report, waiting, writes
from regard.cli.start import load_model
from regard.cli.verb import Verb

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
    from regard.verify.check import check as measure

    with waiting(outputs, "Loading the model …") as status:
        loaded = load_model(model)
        result = measure(loaded, texts, seed=seed, progress=lambda n, size: status.update(f"Checking … {n} of {size}"))
    report(result, outputs)
    if not result.holds:
        raise typer.Exit(1)


CHECK = Verb(
    check, "Verify regard's numbers against the model's own code.",
    heading="Learn and verify",
    examples=("check", "check MODEL --json check.json"),
)  # fmt: skip
