"""What a model wrote, in a terminal."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from regard.views.terminal.layout import section, visible

ENDED = {"end": "it ended", "stop": "a stop string", "length": "as many tokens as were asked for"}


def written(done: Any) -> list[RenderableType]:
    """The text of a `Generated`, its prompt dim; and how many tokens it has."""
    start = len(done.text) - len(done.new) if done.text.endswith(done.new) else 0
    text = Text(_lines(done.text[:start]), style="dim") + Text(_lines(done.text[start:]), style="not dim")
    summary_line = f"{len(done.ids) - done.start} tokens written, {done.start} given; ended by: {ENDED[done.ended]}"
    return [section("Written", text, Text(), Text(summary_line, style="dim"))]


def translated(text: str, target: str) -> Group:
    """A text and its translation."""
    return section(visible(text), Text(_lines(target), style="bold"))


def _lines(text: str) -> str:
    """A text with its line ends kept and everything else that cannot be printed written out."""
    return "\n".join(visible(line) for line in text.split("\n"))
