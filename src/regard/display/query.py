"""Declare a question's options once, for the command, the server's requests and the library's arguments.

A question is a dataclass derived from `Query`, with a field for each option. Modules of queries don't import torch,
typer or pydantic, so that help and error messages appear quickly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.display.answer import Answer
    from regard.models.model import Model
    from regard.models.source import Source

Called = Callable[[str], str]  # from a field to its name for the user: "--to" in the command, "to" in a request
Progress = Callable[[float, float], None]  # called with the amount of work done and the total
FILES = ("figure", "html", "csv", "json")  # groups of `regard.cli.outputs.GROUPS`
MAX_SEED = (1 << 63) - 1


def option(
    help: str = "",
    default: Any = None,
    *,
    metavar: str = "",
    among: Sequence[str] = (),
    least: int | float = -inf,
    most: int | float = inf,
    shown: str = "",
    needed: str = "",
) -> Any:
    """Return a dataclass field that declares an option of a question.

    help, metavar: if empty, those of `regard.cli.help`, which several verbs share. among: the allowed values. shown:
    the default in words. needed: for a required option, its description in the error message.
    """
    details = {"help": help, "metavar": metavar or "|".join(among), "among": tuple(among), "least": least, "most": most}
    return field(default=default, metadata=details | {"shown": "required" if needed else shown, "needed": needed})


def option_name(name: str) -> str:
    """Return the command-line option of a field, such as "--target-text" for "target"."""
    return "--target-text" if name == "target" else "--" + name.replace("_", "-")


@dataclass(frozen=True, kw_only=True)
class Query:
    """A question about texts: one field for each option, and class attributes for its inputs and outputs.

    summary, heading: its line in the list of commands, and the heading of this line. examples: below its options.
    takes_dtype: whether `regard --dtype` applies to it. served: whether a page of `regard serve` offers it.
    texts: the verb's argument, and its help. single: whether it takes only one text. inputs: its other inputs, as
    fields of `Source`. needs_model: the reason if --model is required. files: the groups of files that it writes.
    saved_alone: whether --save writes a single trace, not a list with one trace. full: whether it has --full.
    names_targets: whether its answer shows the targets that the model wrote.
    """

    summary: ClassVar[str] = ""
    heading: ClassVar[str] = "From other packages"
    examples: ClassVar[tuple[str, ...]] = ()
    takes_dtype: ClassVar[bool] = True
    served: ClassVar[bool] = True
    texts: ClassVar[tuple[str, str]] = ("TEXT...", "Your texts, or - for a text from standard input.")
    single: ClassVar[bool] = False
    inputs: ClassVar[tuple[str, ...]] = ("targets", "model")
    needs_model: ClassVar[str] = ""
    files: ClassVar[tuple[str, ...]] = FILES
    saved_alone: ClassVar[bool] = False
    full: ClassVar[bool] = False
    names_targets: ClassVar[bool] = False

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Raise RegardError for wrong options, without a model. texts, targets: the number of texts and targets."""
        for item in fields(self):
            value, metadata, name = getattr(self, item.name), item.metadata, called(item.name)
            among, low, high = metadata["among"], metadata["least"], metadata["most"]
            if value is None and metadata["needed"]:
                raise RegardError(f"{name} is needed: {metadata['needed']}")
            if value is not None and among and value not in among:
                raise RegardError(f"{name}: got {value!r}, expected one of {', '.join(among)}")
            if isinstance(value, str) and not value.strip():
                raise RegardError(f"{name} is empty: pass a {(metadata['metavar'] or item.name).lower()}")
            if isinstance(value, int | float) and not low <= value <= high:
                needs = f"{low} or more" if high == inf else f"{low} to {'2^63 - 1' if high == MAX_SEED else high}"
                raise RegardError(f"{name}: got {value}, expected {needs}")

    def check_source(self, source: "Source", verb: str, outputs: Any) -> None:
        """Check that texts, options and files (`regard.cli.outputs.Outputs`) can be combined. Raises RegardError."""
        source.check(verb, self.texts[0])
        self.check(len(source.texts), len(source.targets), called=option_name)

    def listed(self, answer: "Answer", *, full: bool) -> int | None:
        """Return the number of first or largest entries that a terminal lists, None for all. full: with --full."""
        return None

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Read the source's texts, and return the answer to the question."""
        reading = source.read()
        return self.answer(reading.model, reading.traces, progress)

    def answer(self, model: "Model", traces: Sequence[Any], progress: Progress | None = None) -> "Answer":
        """Return the answer to the question for traces of a model. progress: called during slow computations."""
        raise NotImplementedError

    def need(self, name: str, other: str, called: Called, reason: str = "") -> None:
        """Raise RegardError if an option is set without another that it needs. called: names fields for users."""
        if getattr(self, name) is not None and getattr(self, other) is None:
            raise RegardError(f"{called(name)} needs {called(other)}{': ' if reason else ''}{reason}")
