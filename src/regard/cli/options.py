"""Options that several verbs share, and what their values must be."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.help import OPTIONS
from regard.corpus.manifest import read_manifest
from regard.corpus.settings import place_among_stored_layers
from regard.errors import RegardError


def whole_number_option_value(given: str | int) -> int:
    """An option's value as a number. Raises typer.BadParameter, naming what was given."""
    try:
        return int(given)
    except ValueError as error:
        raise typer.BadParameter(f"given {given!r}, needs a whole number") from error


def seed_option_value(given: str | int) -> int:
    """An option's value as a seed. Raises typer.BadParameter, naming what was given."""
    if not 0 <= (seed := whole_number_option_value(given)) < 1 << 63:
        raise typer.BadParameter(f"given {seed}, needs a whole number from 0 to 2^63 - 1")
    return seed


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


def option(name: str, default: str | bool = True, parser: Any = None) -> typer.models.OptionInfo:
    """Make the option that `OPTIONS` describes. default: what its help says of it. parser: reads its value."""
    metavar, text = OPTIONS[name]
    return typer.Option(name, metavar=metavar, help=text, show_default=default, parser=parser)


def number(
    name: str, default: str | bool = True, *, least: int | float = -math.inf, most: int | float = math.inf
) -> typer.models.OptionInfo:
    """Make an option whose value is a whole number from least to most."""

    def read(given: str | int) -> int:
        found = whole_number_option_value(given)
        if not least <= found <= most:
            needs = f"{least} or more" if most == math.inf else f"{least} to {most}"
            raise RegardError(f"{name}: given {found}, needs {needs}")
        return found

    return option(name, default, read)


USUAL_MODEL, REQUIRED = "all-MiniLM-L6-v2", "required"  # REQUIRED: help shows no default then
Texts = Annotated[list[str] | None, typer.Argument(metavar="TEXT...", help="Your texts.")]
Targets = Annotated[list[str] | None, option("--target-text", "the model generates it")]
Seconds = Annotated[list[str] | None, option("--second", "none")]
ModelName = Annotated[str | None, option("--model", USUAL_MODEL)]
NeededModel = Annotated[str | None, option("--model", REQUIRED)]
OneLayer = Annotated[int, number("--layer")]
OneOfHeads = Annotated[int | None, number("--head", "the mean of all heads")]
Top = Annotated[int, number("--top", least=1)]
All = Annotated[bool, option("--full")]
Window = Annotated[int | None, number("--window")]
Stride = Annotated[int | None, number("--stride", "half of --window")]
Seed = Annotated[int, option("--seed", True, seed_option_value)]
OpenFile = Annotated[Path | None, option("--open")]
StoreFolder = Annotated[Path, option("--store")]
StoreModel = Annotated[str | None, option("--model", "the default model, if it made the index")]
Lookup = Annotated[str, option("--lookup")]
KeptLayer = Annotated[int | None, number("--layer", "the last layer of the index")]
Senses = Annotated[int | None, number("--k", "chosen by silhouette score")]
Examples = Annotated[int, number("--examples")]
Context = Annotated[int, number("--context")]


def check_store(store: Path, layer: int | None = None) -> str:
    """Refuse what is no store, and a layer that it does not keep, before what reads stores is imported.

    Returns:
        The unit that it keeps: words, tokens or texts.
    """
    manifest = read_manifest(store)
    place_among_stored_layers(manifest.layers, layer)
    return manifest.unit


def needed_word(word: str | None, instead: str = "") -> str:
    """Return the word. Raises RegardError, which also names what to give instead, if there is none or a blank one."""
    if word is None or not word.strip():
        raise RegardError(f"--word is needed: a word of the text{instead}")
    return word
