"""Options that several verbs share, and what their values must be."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer


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


def number(name: str, text: str, default: str | bool = True, metavar: str = "N") -> typer.models.OptionInfo:
    """Make an option whose value is a whole number."""
    return typer.Option(name, parser=whole_number_option_value, metavar=metavar, help=text, show_default=default)


def numbers(name: str, text: str) -> typer.models.OptionInfo:
    """An option whose value is several whole numbers. name: with its dashes."""
    return typer.Option(name, parser=whole_numbers, metavar="N,N-N", help=text)


def file(name: str, text: str) -> typer.models.OptionInfo:
    """An option whose value is a file. name: with its dashes."""
    return typer.Option(name, metavar="FILE", help=text)


def said(name: str, metavar: str, text: str, default: str | bool = True) -> typer.models.OptionInfo:
    """Make an option whose value is a text."""
    return typer.Option(name, metavar=metavar, help=text, show_default=default)


def flag(name: str, text: str) -> typer.models.OptionInfo:
    """An option without a value. name: with its dashes."""
    return typer.Option(name, help=text)


def seed(default: str | bool = True) -> typer.models.OptionInfo:
    """Make the option of a seed. default: said in the help where it is no number."""
    told = "The seed of all that is drawn at random."
    return typer.Option("--seed", parser=seed_option_value, metavar="N", help=told, show_default=default)


# What several verbs have, each with one help; what goes without it is the verb's own.
word = partial(said, "--word", "WORD", "The word to look at.")
model = partial(said, "--model", "MODEL", "A model's folder or hub name.")
layer = partial(number, "--layer", "The layer, counted from 0; -1 is the last.")
head = partial(number, "--head", "The head, counted from 0; -1 is the last.")
part = partial(said, "--part", "encoder|decoder|cross", "Which part of an encoder-decoder.")
top = partial(number, "--top", "How many entries of each list to show.", metavar="K")
window = partial(number, "--window", "Read a text in overlapping windows of N tokens.")
stride = partial(number, "--stride", "How many tokens later each next window begins.")
text_prompt = partial(
    said, "--text-prompt", "NAME|TEXT", "Of texts: what each begins with, a prompt of the model's folder or any other.",
    "the folder's choice",
)  # fmt: skip
out = partial(said, "--out", "FOLDER", "The folder to write: a new one, or one to go on with.")
store = partial(said, "--store", "STORE", "A folder that regard embed wrote.")
opened = partial(file, "--open", "Read a file that --save wrote, in place of a text.")
steps = partial(number, "--steps", "How many steps to take.")

USUAL_MODEL, NEEDED, MEAN = "all-MiniLM-L6-v2", "none, needed", "the mean of all"
Texts = Annotated[list[str] | None, typer.Argument(metavar="TEXT...", help="One text or several.")]
Targets = Annotated[
    list[str] | None,
    said("--target", "TEXT", "What an encoder-decoder writes; once for each text.", "the model writes it itself"),
]
FollowedWord = Annotated[str | None, word("none: an overview of all tokens")]
NeededWord = Annotated[str | None, word(NEEDED)]
NeededOrEdge = Annotated[str | None, word("none, needed without --edge")]
Edge = Annotated[
    str | None,
    said("--edge", "WORD:WORD", "Split the score that the first word gives the second: why a head looks there."),
]
References = Annotated[
    str | None, said("--with", "WORD,WORD", "Compare the word with these; they need not be in a text.")
]
ControlFile = Annotated[
    Path | None, file("--control", "With --with: neutral sentences to compare with, one a line, {} for the word.")
]
ModelName = Annotated[str | None, model(USUAL_MODEL)]
NeededModel = Annotated[str | None, model("none, needed: the default model cannot write")]
OneLayer = Annotated[int, layer()]
OneOfHeads = Annotated[int | None, head(MEAN)]
Top = Annotated[int, top()]
Next = Annotated[bool, flag("--next", "Show what each layer would say next: the logit lens.")]
All = Annotated[bool, flag("--all", "Show everything that was found, not only the first of it.")]
Window = Annotated[int | None, window()]
Stride = Annotated[int | None, stride("half of --window")]
Seed = Annotated[int, seed()]
StaticFile = Annotated[
    str | None,
    said("--static", "FILE|learned", "With --with: compare static vectors too: word2vec, GloVe, the model's."),
]
Images = Annotated[
    list[Path] | None, file("--image", "A picture, alone or with its TEXT, for a --model that sees; once for each.")
]
Remove = Annotated[
    str | None,
    said("--remove", "blank|mean|blur", "With --image: remove each region in turn, and say what it changes."),
]
Chat = Annotated[
    Path | None, file("--chat", "Instead of a TEXT: a JSON list of messages, each with a role and a content.")
]
OpenFile = Annotated[Path | None, opened()]
