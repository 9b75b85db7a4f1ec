"""`regard positions`: positional encodings as numbers and as a picture."""

from typing import Annotated

from regard.cli import options
from regard.cli.asking import command_option_name
from regard.cli.file_options import writes
from regard.cli.options import number, said
from regard.cli.outputs import NOTHING, Outputs
from regard.errors import RegardError

KINDS = ("sinusoidal", "learned", "rotary", "alibi")
Kind = Annotated[str, said("--kind", "|".join(KINDS), "Which encoding to show.")]
Width = Annotated[int | None, number("--width", "How many components a vector has.", "64; learned: the model's")]
Length = Annotated[int | None, number("--length", "How many positions to show.", "100")]
TableOf = Annotated[str | None, options.model("with --kind learned: all-MiniLM-L6-v2")]


@writes("figure", "html", "csv", "json")
def positions(
    kind: Kind = "sinusoidal",
    width: Width = None,
    length: Length = None,
    model: TableOf = None,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Show what a positional encoding adds, turns or subtracts; --kind learned shows a model's own table."""
    if kind not in KINDS:
        raise RegardError(f"--kind {kind!r}: needs {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    for name, given in (("--width", width), ("--length", length)):
        if given is not None and given < 1:
            raise RegardError(f"{name}: given {given}, needs 1 or more")
    if model is not None and kind != "learned":
        raise RegardError("--model needs --kind learned: the other kinds are formulas")
    if width is not None and kind == "alibi":
        raise RegardError("--width: alibi is a bias of positions alone, it has no width")
    if width is not None and width % 2 and kind == "rotary":
        raise RegardError(f"--width: given {width}, needs to be even, for rotary positions turn pairs of components")
    outputs.check()

    # torch and matplotlib are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles
    from regard.cli.start import load_model
    from regard.cli.telling import tell
    from regard.questions.positions import answer

    opened = load_model(model) if kind == "learned" else None
    found = answer.positions(kind, length, width, model=opened, called=command_option_name)
    tell(found, outputs, consoles(outputs.json), everything=everything)
