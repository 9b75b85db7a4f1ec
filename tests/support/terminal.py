"""What a view prints, as text."""

import io
from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Console, RenderableType

from regard.display.terminal_parts import print_terminal_parts


def printed(show: Callable[..., None], *given: Any, width: int = 80, **options: Any) -> str:
    """What a function that shows something prints; its console is given as `console`."""
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(*given, console=console, **options)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def printed_parts(parts: Iterable[RenderableType], width: int = 80) -> str:
    """What parts print."""
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_terminal_parts(parts, console)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]
