"""Declare what may be asked, once: a question's options in the command, a server's request, the library's arguments.

A question has a dataclass derived from `Asked`, with a field for each thing that may be asked. Neither torch, typer nor
pydantic is imported here or there: help and refusals do not wait for them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.display.answer import Answer
    from regard.models.model import Model

Called = Callable[[str], str]  # what a caller calls a field: "--to" in the command, "to" in a request
Progress = Callable[[int, int], None]  # told how much of an answer is done, and of how much


def option(text: str, default: Any = None, *, metavar: str = "", among: Sequence[str] = (), shown: str = "") -> Any:
    """Declare a field that may be asked."""
    known = {"help": text, "metavar": metavar or "|".join(among) or None, "among": tuple(among)}
    return field(default=default, metadata=known | {"shown": shown})


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What may be asked of texts, a field each.

    texts: how the command calls its texts, and what help says of them. ranked: whether a terminal names the first or
    largest of what is found, as many as --top says, and not all. pairs: whether a text may have a second one beside it.
    """

    texts: ClassVar[tuple[str, str]] = ("TEXT [TEXT ...]", "Your texts.")
    ranked: ClassVar[bool] = True
    pairs: ClassVar[bool] = False

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Refuse what can be refused without a model. texts, targets: how many were given."""
        for each in fields(self):
            given, among = getattr(self, each.name), each.metadata["among"]
            if given is not None and among and given not in among:
                raise RegardError(f"{called(each.name)}: given {given!r}, needs one of {', '.join(among)}")
            if isinstance(given, str) and not given.strip():
                needed = (each.metadata["metavar"] or each.name).lower()
                raise RegardError(f"{called(each.name)} is empty: give a {needed}")

    @property
    def grid(self) -> bool:
        """Whether the answer is a grid that is shown whole, so that --top has nothing to say."""
        return not self.ranked

    def answer(self, model: "Model", traces: Sequence[Any], progress: Progress | None = None) -> "Answer":
        """Answer it of traces of this model. progress: told how much is done, where it takes long."""
        raise NotImplementedError

    def need(self, name: str, other: str, called: Called, why: str = "") -> None:
        """Refuse the option name without the other one, which it needs. called: what messages call them; why: added."""
        if getattr(self, name) is not None and getattr(self, other) is None:
            raise RegardError(f"{called(name)} needs {called(other)}{': ' if why else ''}{why}")
