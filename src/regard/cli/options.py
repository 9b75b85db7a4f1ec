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


class Numbers(tuple[int, ...]):
    """Several whole numbers as one option's value."""


def whole_numbers(given: str | Numbers) -> Numbers:
    """An option's value as numbers: "0,2-4" is 0, 2, 3 and 4. Raises typer.BadParameter, naming what was given."""
    if isinstance(given, Numbers):
        return given
    found: list[int] = []
    for part in given.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not (last.isdecimal() and int(first) <= int(last) < 10_000)):
            raise typer.BadParameter(f"given {given!r}, needs whole numbers such as 0,2-4")
        found += range(int(first), int(last or first) + 1)
    return Numbers(sorted(set(found)))


def number(metavar: str, text: str) -> typer.models.OptionInfo:
    """An option whose value is a whole number."""
    return typer.Option(parser=whole_number, metavar=metavar, help=text)


def numbers(name: str, text: str) -> typer.models.OptionInfo:
    """An option whose value is several whole numbers. name: with its dashes."""
    return typer.Option(name, parser=whole_numbers, metavar="N,N-N", help=text)


def file(name: str, text: str) -> typer.models.OptionInfo:
    """An option whose value is a file. name: with its dashes."""
    return typer.Option(name, metavar="FILE", help=text)


Texts = Annotated[list[str] | None, typer.Argument(metavar="TEXT...", help="One text or several.")]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="T", help="Of an encoder-decoder: what it writes; once for each text."),
]
FollowedWord = Annotated[str | None, typer.Option(help="The word to follow; without it, an overview of all tokens.")]
NeededWord = Annotated[str | None, typer.Option(help="The word to look at, needed.")]
NeededOrEdge = Annotated[str | None, typer.Option(help="The word to look at, needed unless there is --edge.")]
Edge = Annotated[
    str | None,
    typer.Option(
        "--edge", metavar="WORD:WORD", help="Why a head looks there: what makes the first word's score for the second."
    ),
]
EdgePart = Annotated[
    str | None,
    typer.Option("--part", metavar="encoder|decoder|cross", help="Of an encoder-decoder, --edge of which attention."),
]
References = Annotated[
    str | None, typer.Option("--with", metavar="W,W,...", help="Words to compare it with, in a text or not.")
]
ControlFile = Annotated[
    Path | None, file("--control", "Neutral sentences to hold it against, one a line, {} for the word.")
]
ModelName = Annotated[str | None, typer.Option(help="A model folder or hub name; by default all-MiniLM-L6-v2.")]
NeededModel = Annotated[
    str | None, typer.Option(help="A model folder or hub name, needed: the default model cannot write.")
]
Layer = Annotated[int | None, number("N", "Show single heads of this layer, counted from 0; -1 is the last.")]
Head = Annotated[int | None, number("N", "Show this head (from 0; -1: the last), of --layer or of every layer.")]
EdgeLayer = Annotated[int | None, number("N", "The layer of --edge; without it where the weight is largest.")]
EdgeHead = Annotated[int | None, number("N", "The head of --edge; without it the one whose weight is largest.")]
OneLayer = Annotated[int, number("N", "The layer, counted from 0; -1 is the last.")]
OneOfHeads = Annotated[int | None, number("N", "One head, from 0 (-1: the last); by default the mean of all.")]
Top = Annotated[int, number("K", "How many tokens to name.")]
Next = Annotated[bool, typer.Option("--next", help="What each layer would say next: the logit lens.")]
All = Annotated[bool, typer.Option("--all", help="Show everything that was found, not the first of it alone.")]
Window = Annotated[int | None, number("N", "Read a text in overlapping windows of N tokens.")]
Stride = Annotated[int | None, number("N", "How far a window is past the last; by default half of it.")]
StaticFile = Annotated[
    str | None,
    typer.Option("--static", metavar="FILE|learned", help="Beside static vectors: word2vec, GloVe, the model's."),
]
OpenFile = Annotated[Path | None, file("--open", "Look at saved traces, without the model: no TEXT then.")]
OpenAgain = Annotated[Path | None, file("--open", "Take the texts of saved traces: --model traces them again.")]
