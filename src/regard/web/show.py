"""`show`: traces as the live page, in a notebook where it stands, elsewhere in a browser."""

import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

from regard.generation.generator import Generated
from regard.models.windows import WindowedTrace, longest
from regard.trace import display
from regard.trace.trace import Trace
from regard.web.assemble import Choice, Shown, check_given, listed, page_as_seen
from regard.web.numbers import Encoding
from regard.web.page import HasPage
from regard.web.save_page import page_control_traces, page_reference_traces, save_page
from regard.web.sizes import LIMIT

if TYPE_CHECKING:
    from rich.console import RenderableType

    from regard.web.widget import AttentionWidget

EXTRA = "The live page needs anywidget: pip install 'regard[notebook]' and restart the kernel. Without it:"
ANSWERED = "What was found has no live page in a notebook yet: regard.save_page(found, 'page.html') writes one. Here:"
IN_TERMINAL = ("www-browser", "links", "elinks", "lynx", "w3m")  # browsers that run no page's program


class StaticView(display.Shown):
    """What `show` gives in a notebook where there is no live page: one line that says so, and what traces show."""

    def __init__(self, parts: "Sequence[RenderableType]", line: str = EXTRA) -> None:
        self.parts, self.line = parts, line

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """The line and the parts that the traces show themselves by."""
        from rich.text import Text

        return [Text(self.line), Text(), *self.parts]


def show(
    traces: Shown | HasPage | Sequence[Shown | HasPage],
    *,
    word: str | None = None,
    references: Trace | Sequence[Trace] = (),
    control: Sequence[Trace] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    numbers: Encoding = "int16",
    steps: bool | Sequence[int] = False,
    title: str | None = None,
    findings: Sequence[str] | None = None,
    limit: int | None = LIMIT,
    file: str | Path | None = None,
) -> "AttentionWidget | StaticView | Path":
    """Show what every token of some traces attends to, or what was found of them, to hover over: the live page.

    In a notebook (Jupyter, marimo) this returns the page as a widget, whose traits `text`, `layer`, `head`, `token`,
    `side` and `view` can be read and set; where anywidget is not installed (the extra `notebook`), what traces show
    themselves, and a line that says so. Elsewhere it writes the one file of `regard.save_page`, opens it in a browser,
    says where it lies, and returns its path.

    Args:
        traces, word, references, control, layers, heads, numbers, steps, title, findings, limit: as `regard.save_page`
            has them.
        file: where to write the one file, in a notebook too; by default in a temporary folder, outside a notebook.

    Raises:
        RegardError: as `regard.save_page`.
    """
    given = list(traces) if isinstance(traces, list | tuple) else [traces]
    if file is None and in_notebook() and any(isinstance(one, HasPage) for one in given):
        return StaticView(shown_answers(given), ANSWERED)
    if file is None and in_notebook():
        traces = cast("Shown | Sequence[Shown]", traces)
        each, choice = listed(traces), Choice(layers, heads, numbers, steps, limit)
        check_given(each, choice)
        words = page_reference_traces(references, word, findings)
        neutral = page_control_traces(control, words)
        parts = shown_traces(each, word, display.WIDTH, words, neutral)
        if find_spec("anywidget") is None:
            return StaticView(parts)
        from regard.web.widget import AttentionWidget

        page = page_as_seen(each, choice, word, title=title, findings=findings, references=words, control=neutral)
        return AttentionWidget(page, display.html(parts))
    path = Path(tempfile.mkdtemp(prefix="regard-")) / "page.html" if file is None else Path(file)
    try:
        save_page(
            traces, path, word=word, references=references, control=control, layers=layers, heads=heads,
            numbers=numbers, steps=steps, title=title, findings=findings, limit=limit,
        )  # fmt: skip
    except BaseException:
        if file is None:
            path.parent.rmdir()  # nothing was written into it
        raise
    print(
        f"The page lies in {path}" + (", opened in a browser." if open_in_browser(path) else ": open it in a browser.")
    )
    return path


def in_notebook() -> bool:
    """Whether a notebook runs this: IPython's kernel, as Jupyter has it, or marimo."""
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        return True
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def open_in_browser(file: Path) -> bool:
    """Open a file in a person's browser; returns whether there is one that took it."""
    try:
        if Path(getattr(webbrowser.get(), "name", "")).name in IN_TERMINAL:
            return False
        return webbrowser.open(file.absolute().as_uri())
    except webbrowser.Error:
        return False


def shown_traces(
    traces: Sequence[Shown],
    word: str | None,
    width: int,
    references: Sequence[Trace] = (),
    control: Sequence[Trace] | None = None,
) -> "list[RenderableType]":
    """Return the parts that traces show themselves by, about a word where one is given and they are no long texts.

    Args:
        traces: one or several.
        word: in every text, None for none.
        width: columns of the terminal or notebook.
        references, control: traces of reference words and of neutral sentences with the word.
    """
    from rich.text import Text

    parts: list[RenderableType] = []
    plain = [one.trace if isinstance(one, Generated) else one for one in traces]
    short = [one for one in plain if not isinstance(one, WindowedTrace) and longest(one) <= display.LONG]
    if word is not None and len(short) == len(plain):
        return list(display.see(short, word, references=references, control=control).shown(width))
    for one in traces:
        if isinstance(one, Generated):
            parts += one.shown(width)
        else:
            parts += [Text(repr(one))] if isinstance(one, WindowedTrace) else display.shown_trace(one, width)
        parts.append(Text())
    return parts[:-1]


def shown_answers(given: Sequence[object]) -> "list[RenderableType]":
    """The parts that traces, and what was found of them, show themselves by."""
    from rich.text import Text

    parts: list[RenderableType] = []
    for one in given:
        if isinstance(one, Shown):
            parts += shown_traces([one], None, display.WIDTH)
        else:
            parts += one.shown(display.WIDTH) if isinstance(one, display.Shown) else [Text(repr(one))]
        parts.append(Text())
    return parts[:-1]
