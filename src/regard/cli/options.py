"""Define options that several verbs share, and check their values."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.help import OPTIONS
from regard.errors import RegardError


def whole_number_option_value(value: str | int) -> int:
    """Convert an option's value to an int. Raises typer.BadParameter if it isn't a whole number."""
    try:
        return int(value)
    except ValueError as error:
        raise typer.BadParameter(f"got {value!r}, expected a whole number") from error


def seed_option_value(value: str | int) -> int:
    """Convert an option's value to a random seed. Raises typer.BadParameter if it isn't one."""
    if not 0 <= (seed := whole_number_option_value(value)) < 1 << 63:
        raise typer.BadParameter(f"got {seed}, expected a whole number from 0 to 2^63 - 1")
    return seed


class Numbers(tuple[int, ...]):
    """The value of an option that takes several whole numbers."""


def whole_numbers(value: str | Numbers) -> Numbers:
    """Parse an option's value: "0,2-4" means 0, 2, 3 and 4. Raises typer.BadParameter if it is invalid."""
    if isinstance(value, Numbers):
        return value
    numbers: list[int] = []
    for part in value.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not (last.isdecimal() and int(first) <= int(last) < 10_000)):
            raise typer.BadParameter(f"got {value!r}, expected whole numbers such as 0,2-4")
        numbers += range(int(first), int(last or first) + 1)
    return Numbers(sorted(set(numbers)))


def option(name: str, default: str | bool = True, parser: Any = None) -> typer.models.OptionInfo:
    """Return a typer option described in `OPTIONS`. default: its text in the help. parser: converts its value."""
    metavar, text = OPTIONS[name]
    return typer.Option(name, metavar=metavar, help=text, show_default=default, parser=parser)


def number(
    name: str, default: str | bool = True, *, least: int | float = -math.inf, most: int | float = math.inf
) -> typer.models.OptionInfo:
    """Return an option whose value is a whole number from `least` to `most`."""

    def read(value: str | int) -> int:
        integer = whole_number_option_value(value)
        if not least <= integer <= most:
            needs = f"{least} or more" if most == math.inf else f"{least} to {most}"
            raise RegardError(f"{name}: got {integer}, expected {needs}")
        return integer

    return option(name, default, read)


USUAL_MODEL, REQUIRED = "all-MiniLM-L6-v2", "required"  # REQUIRED: shown in the help instead of a default
Targets = Annotated[list[str] | None, option("--target-text", "the model generates it")]
Seconds = Annotated[list[str] | None, option("--second", "none")]
ModelName = Annotated[str | None, option("--model", USUAL_MODEL)]
NeededModel = Annotated[str | None, option("--model", REQUIRED)]
OneLayer = Annotated[int, number("--layer")]
OneOfHeads = Annotated[int | None, number("--head", "the mean of all heads")]
All = Annotated[bool, option("--full")]
Window = Annotated[int | None, number("--window")]
Stride = Annotated[int | None, number("--stride", "half of --window")]
Seed = Annotated[int, option("--seed", True, seed_option_value)]
OpenFile = Annotated[Path | None, option("--open")]
Images = Annotated[list[Path] | None, option("--image")]
Chat = Annotated[Path | None, option("--chat")]
