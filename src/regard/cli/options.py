"""Options that several verbs share, and what their values must be."""

from pathlib import Path
from typing import Annotated

import typer


def whole_number(given: str | int) -> int:
    """An option's value as a number. Raises typer.BadParameter, naming what was given."""
    try:
        return int(given)
    except ValueError as error:
        raise typer.BadParameter(f"given {given!r}, needs a whole number") from error


def _number(metavar: str, text: str) -> typer.models.OptionInfo:
    return typer.Option(parser=whole_number, metavar=metavar, help=text)


def _file(name: str, text: str) -> typer.models.OptionInfo:
    return typer.Option(name, metavar="FILE", help=text)


Texts = Annotated[list[str] | None, typer.Argument(metavar="TEXT...", help="One text or several.")]
FollowedWord = Annotated[str | None, typer.Option(help="The word to follow; without it, an overview of all tokens.")]
References = Annotated[
    str | None, typer.Option("--with", metavar="W,W,...", help="Words to compare it with, in a text or not.")
]
ModelName = Annotated[str | None, typer.Option(help="A model folder or hub name; by default all-MiniLM-L6-v2.")]
Layer = Annotated[int | None, _number("N", "Show single heads of this layer, counted from 0.")]
Head = Annotated[int | None, _number("N", "Show this head, counted from 0, of --layer or of every layer.")]
Top = Annotated[int, _number("K", "How many tokens to name.")]
FigureFile = Annotated[Path | None, _file("--figure", "Write a picture: .png or .svg.")]
JsonFile = Annotated[Path | None, _file("--json", "Write everything shown, at full precision: .json.")]
SaveFile = Annotated[Path | None, _file("--save", "Write the traces: .safetensors.")]
