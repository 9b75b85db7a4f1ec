"""`save_page`: traces as one offline HTML file, to hover over."""

from collections.abc import Sequence
from pathlib import Path

from regard.checks import chosen_numbers
from regard.errors import RegardError
from regard.files import check_target
from regard.models.windows import WindowedTrace
from regard.trace.layer_subset import call_numbers
from regard.trace.trace import PairTrace, Trace
from regard.web.add_traces import Added, add_pair, add_trace
from regard.web.html_file import Shell, built_shell, write_html
from regard.web.numbers import ENCODINGS, Encoding, NumberStore, vector_bytes
from regard.web.page import Page, status_lines

LIMIT = 200_000_000  # bytes of a file: browsers are slow to open more
LINE = 80  # characters of a title
Shown = Trace | PairTrace | WindowedTrace


def save_page(
    traces: Shown | Sequence[Shown],
    file: str | Path,
    *,
    word: str | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    numbers: Encoding = "int16",
    title: str | None = None,
    findings: Sequence[str] | None = None,
    limit: int | None = LIMIT,
) -> int:
    """Write traces to one HTML file that shows what every token attends to, offline and exactly, at any length.

    The file carries queries and keys and computes weights where one looks: it grows with the text, not with its square.
    How far its weights are from the library's is measured on all of them and stands in the file.

    Args:
        traces: of a text, of a text and its target, of a long text in windows, or several of these.
        file: its ending is .html.
        word: to open at; `findings` are then about it.
        layers, heads: the numbers of those to carry, None for all.
        numbers: how queries and keys are carried: "int16" with one scale a vector, or "float32", which is exact and
            twice as large.
        title: one line, by default the text.
        findings: sentences to stand above, None for those of `trace.see(word)`.
        limit: how many bytes the file may have, None for any number.

    Returns the file's size in bytes.

    Raises:
        RegardError: a word, layer or head that is not there, a call whose scores a page cannot compute, a file that
            cannot be written or would be too large, or a checkout in which the page is not built.
    """
    path = Path(file)
    check_target(path, (".html",), "save_page")
    shell = built_shell()
    page = page_of(
        traces, word=word, layers=layers, heads=heads, numbers=numbers, title=title, findings=findings, limit=limit
    )
    return write_page(page, path, shell, limit)


def write_page(page: Page, file: Path, shell: Shell, limit: int | None = LIMIT) -> int:
    """Write a page that was put together; returns the file's size in bytes. Raises RegardError over the limit."""
    check_size(page.numbers.size, limit)
    return write_html(page, file, shell)


def page_of(
    traces: Shown | Sequence[Shown],
    *,
    word: str | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    numbers: Encoding = "int16",
    title: str | None = None,
    findings: Sequence[str] | None = None,
    limit: int | None = LIMIT,
) -> Page:
    """Put together the page that `save_page` writes; the arguments and errors are its own."""
    each = listed(traces)
    if numbers not in ENCODINGS:
        raise RegardError(f"numbers: given {numbers!r}, needs {' or '.join(map(repr, ENCODINGS))}")
    page = Page(
        title or title_of(each),
        layers=chosen_numbers("layer", layers),
        heads=chosen_numbers("head", heads),
        numbers=NumberStore(numbers),
    )
    check_size(estimated_size(each, page), limit)
    page.findings = found(each, word) if findings is None else findings
    places = [add(page, one, n, len(each)) for n, one in enumerate(each)]
    if not page.calls:
        raise RegardError("save_page: the traces hold no attention that the page is to have")
    page.status = status_lines([one.status for one in each], page) + page.status
    if word is not None:
        open_at(page, each, places, word)
    return page


def listed(traces: Shown | Sequence[Shown]) -> list[Shown]:
    """Return traces as a list. Raises RegardError where there is none, or something else."""
    each = [traces] if isinstance(traces, Shown) else list(traces)
    if not each:
        raise RegardError("save_page: given no trace, needs at least one")
    for one in each:
        if not isinstance(one, Shown):
            raise RegardError(f"save_page: given {type(one).__name__}, needs traces")
    return each


def add(page: Page, trace: Shown, number: int, count: int) -> list[Added]:
    """Add one trace of several; returns where its sides or windows stand."""
    nth = "" if count == 1 else f" {number + 1}"
    if isinstance(trace, PairTrace):
        return list(add_pair(page, trace, f"source{nth}", f"target{nth}"))
    if isinstance(trace, WindowedTrace):
        windows, text = len(trace.windows), f"text{nth}, " if nth else ""
        return [
            add_trace(page, window, f"{text}window {n + 1} of {windows}, tokens {first} to {stop - 1}")
            for n, (window, (first, stop)) in enumerate(zip(trace.windows, trace.spans, strict=True))
        ]
    return [add_trace(page, trace, f"text {number + 1}")]


def found(traces: Sequence[Shown], word: str | None) -> list[str]:
    """The sentences of `see`; none where it has nothing to say of such traces."""
    from regard.trace.display import see

    plain = [one for one in traces if not isinstance(one, WindowedTrace)]
    if len(plain) < len(traces):
        return []
    try:
        return see(plain, word).findings
    except RegardError:
        if word is not None:
            raise
        return []


def open_at(page: Page, traces: Sequence[Shown], places: Sequence[Sequence[Added]], word: str) -> None:
    """Open a page at the first token of a word, in the first text that has it."""
    for trace, added in zip(traces, places, strict=True):
        for side, place in zip(sides(trace), added, strict=True):
            try:
                token = side.word(word)[0].tokens[0]
            except RegardError:
                continue
            calls = place.calls or place.cross
            if calls:
                page.opening |= {"call": next(iter(calls.values())), "token": token}
                return


def sides(trace: Shown) -> Sequence[Trace]:
    """The traces that a page shows of one: both sides of a pair, the windows of a long text."""
    return trace.windows if isinstance(trace, WindowedTrace) else trace.sides


def title_of(traces: Sequence[Shown]) -> str:
    """What a page is called: its first text, shortened, and how many others there are."""
    first = traces[0].text if not isinstance(traces[0], PairTrace) else traces[0].encoder.text
    others = f" and {len(traces) - 1} more" if len(traces) > 1 else ""
    line = " ".join(first.split()) or "an empty text"
    return (line if len(line) <= LINE else line[: LINE - 1] + "…") + others


def estimated_size(traces: Sequence[Shown], page: Page) -> int:
    """How many bytes a page of these traces takes at most, before anything is computed: biases and masks aside."""
    total = 0
    for side in (side for trace in traces for side in sides(trace)):
        for maps in (side.attention, side.cross):
            for call in call_numbers(maps):
                if page.layers is not None and call[0] not in page.layers:
                    continue
                weights = maps[call]
                query, key = tuple(weights.query.shape[1:]), tuple(weights.key.shape[1:])
                if page.heads is not None:
                    query = (len(page.heads), *query[1:])
                    key = (min(len(page.heads), key[0]), *key[1:])
                total += vector_bytes(query, page.encoding) + vector_bytes(key, page.encoding)
                total += 8 * query[0] * query[1]
    return total * 4 // 3


def check_size(size: int, limit: int | None) -> None:
    """Raise RegardError where a page would be larger than it may be."""
    if limit is not None and size > limit:
        raise RegardError(
            f"save_page: the page would have about {size / 1e6:.0f} MB, {limit / 1e6:.0f} MB are the most: leave out "
            "layers (layers=, --html-layers) or heads (heads=), or raise the limit (limit=)"
        )
