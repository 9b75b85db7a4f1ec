"""Show traces as an interactive page in a notebook or a browser (`regard.show`), or as static displays."""

import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from regard.display.notebook import LONG, parts_html
from regard.errors import RegardError
from regard.generation.generator import Generated
from regard.models.windows import WindowedTrace, longest
from regard.questions.generate.answer import generated
from regard.questions.see.answer import listed_traces, see
from regard.shown import WIDTH, Shown
from regard.text.quoting import visible
from regard.trace.any_attention import is_attention
from regard.trace.trace import PairTrace, Trace
from regard.views.save_page import put_together, save_page
from regard.web.assemble import LIMIT, listed, plain_traces
from regard.web.page import Page, status_lines

if TYPE_CHECKING:
    from rich.console import RenderableType

    from regard.web.widget import AttentionWidget

EXTRA = "The live page needs anywidget: pip install 'regard[notebook]' and restart the kernel. Without it:"
IN_TERMINAL = ("www-browser", "links", "elinks", "lynx", "w3m")  # browsers that don't run a page's JavaScript


class StaticView(Shown):
    """The result of `regard.show` in a notebook without anywidget: a note and the traces' static displays."""

    def __init__(self, parts: "Sequence[RenderableType]") -> None:
        self.parts = parts

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """Return the note and the static displays of the traces."""
        return [Text(EXTRA), Text(), *self.parts]


def show(
    traces: Any,
    *,
    tokens: Sequence[Any] | None = None,
    key_tokens: Sequence[Any] | None = None,
    batch: int = 0,
    grid: Sequence[int] | None = None,
    image: Any = None,
    word: str | None = None,
    references: Trace | Sequence[Trace] = (),
    control: Sequence[Trace] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    steps: bool | Sequence[int] = False,
    title: str | None = None,
    findings: Sequence[str] | None = None,
    limit: int | None = LIMIT,
    file: str | Path | None = None,
    bare: bool = False,
) -> "AttentionWidget | StaticView | Path":
    """Show the interactive page of traces or results: what every token attends to.

    In a notebook (Jupyter, marimo), returns the page as a widget. You can read and set its traits `text`, `layer`,
    `head`, `token`, `side` and `view`. Without anywidget (extra `notebook`), returns static displays with a note.
    Outside a notebook, writes the file of `regard.save_page`, opens it in a browser, prints its path and returns it.

    Args:
        traces, tokens, key_tokens, batch, grid, image, word, references, control, layers, heads: see
            `regard.save_page`, also for steps, title, findings and limit.
        file: write this file, even in a notebook. Default: outside notebooks, a file in a temporary folder.
        bare: in a notebook, show only the view that the trait `view` selects, without sentences, tabs and tools.

    Raises:
        RegardError: see `regard.save_page`. Also if bare is set outside a notebook.
    """
    arguments = dict(locals())
    options: Any = {name: value for name, value in arguments.items() if name not in ("traces", "file", "bare")}
    if file is None and in_notebook():
        page = put_together(traces, **options)
        items = [page.title] if is_attention(traces) else listed(traces)
        neutral = None if control is None else listed_traces("control", control)
        parts = shown_parts(items, word, listed_traces("references", references), neutral)
        if find_spec("anywidget") is None:
            return StaticView(parts)
        from regard.web.widget import AttentionWidget

        return AttentionWidget(page, parts_html(parts), bare=bare)
    if bare:
        raise RegardError("bare is for the live page in a notebook, not for files")
    path = Path(tempfile.mkdtemp(prefix="regard-")) / "page.html" if file is None else Path(file)
    try:
        save_page(traces, path, **options)
    except BaseException:
        if file is None:
            path.parent.rmdir()  # the folder is empty
        raise
    opened = ", opened in a browser." if open_in_browser(path) else ": open it in a browser."
    print(f"The page lies in {path}{opened}")
    return path


def in_notebook() -> bool:
    """Return whether this process is a notebook kernel: IPython's (as in Jupyter) or marimo's."""
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        return True
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def open_in_browser(file: Path) -> bool:
    """Open an HTML file in the user's browser. Returns whether this succeeded."""
    try:
        if Path(getattr(webbrowser.get(), "name", "")).name in IN_TERMINAL:
            return False
        return webbrowser.open(file.absolute().as_uri())
    except webbrowser.Error:
        return False


def shown_parts(
    items: Sequence[Any], word: str | None, references: Sequence[Trace] = (), control: Sequence[Trace] | None = None
) -> "list[RenderableType]":
    """Return the static displays of traces and answers. If all are traces of short texts, they are about the word.

    references, control: traces of reference words, and of neutral sentences with the word.
    """
    plain: list[Any] = plain_traces(items)
    if word is not None and all(isinstance(item, Trace | PairTrace) and longest(item) <= LONG for item in plain):
        return list(see(plain, word, references=references, control=control).shown(WIDTH))
    parts: list[RenderableType] = []
    for item in items:
        as_repr = isinstance(item, WindowedTrace) or not isinstance(item, Shown)
        parts += [Text(repr(item)), Text()] if as_repr else [*item.shown(WIDTH), Text()]
    return parts[:-1]


def trace_parts(trace: Trace | PairTrace, width: int) -> "Sequence[RenderableType]":
    """Return the static display of a trace: its main results. For a long text, return its size and a page's status."""
    if longest(trace) <= LONG and trace.sides[0].tokens:
        with suppress(RegardError):  # the trace has no attention
            return see(trace).shown(width)
    return [Text(repr(trace)), Text(), *map(Text, status_lines([trace.status], Page("")))]


def generated_parts(done: Generated, width: int) -> "Sequence[RenderableType]":
    """Return the static display of generated text: the probability of each token, if available, and the trace."""
    trace = done.trace
    if isinstance(trace, Trace) and trace.logits is not None and len(trace.tokens) <= LONG:
        return [*generated(done).shown(width), *trace_parts(trace, width)]
    written = Text.assemble(visible(done.text.removesuffix(done.new)), (visible(done.new), "bold"))
    return [written, Text(), *trace_parts(trace, width)]
