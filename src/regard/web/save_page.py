"""`save_page`: traces, and what was found of them or in a store, as one offline HTML file to hover over."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from regard.errors import RegardError
from regard.files import check_output_file
from regard.trace.any_attention import is_attention
from regard.trace.display import listed_control, listed_references
from regard.trace.trace import PairTrace, Trace
from regard.web.assemble import Choice, Opening, Shown, page_as_seen, page_of
from regard.web.attention_page import attention_page
from regard.web.built_page import built_shell, check_page_built
from regard.web.html_file import write_html
from regard.web.numbers import Encoding
from regard.web.page import HasPage, Page
from regard.web.sizes import LIMIT, check_page_size


def save_page(
    traces: Any,
    file: str | Path,
    *,
    tokens: Sequence[Any] | None = None,
    key_tokens: Sequence[Any] | None = None,
    batch: int = 0,
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
) -> int:
    """Write traces to one HTML file that shows what every token attends to, offline and exactly, at any length.

    The file carries queries and keys and computes weights where one looks: it grows with the text, not with its square.
    How far its weights are from the library's is measured on all of them and stands in the file.

    Args:
        traces: of a text, of a text and its target, of a long text in windows, what `model.generate` gives, or several
            of these. Two of the same tokens, such as before and after an ablation, are also compared. Or what was
            found, by `model.patch_sweep`, `.attribution`, `.score_sources`, `.attribute_to_tokens`,
            `store.senses(word)` or `store.stats()`: one, or several in a list, with traces or without. Without them
            title, findings and limit alone count. Or any attention that `regard.plot` takes: then layers, heads,
            numbers, title, findings and limit count.
        tokens, key_tokens, batch: labels of any attention and an item of its batch, as `regard.plot` takes them. A
            trace knows its tokens.
        file: its ending is .html.
        word: to open at; the sentences above are then about it, and Movement shows its path through the layers.
        references: words that it is compared with, each traced by itself, such as `model.trace("river")`; sentences and
            Movement put them beside the word.
        control: neutral sentences with the word, `model.trace(regard.neutral_sentences("bank"))`, against which the
            page tells where the texts move it; without them that is not told.
        layers, heads: the numbers of those to carry, None for all.
        numbers: how queries and keys are carried: "int16" with one scale a vector, or "float32", which is exact and
            twice as large.
        steps: carry values, hidden states and projections too, of all layers or of these, so that every step from
            queries to the residual stream can be looked at. The file says how much they take.
        title: one line, by default the text.
        findings: sentences to stand above, None for those of `trace.see(word)`.
        limit: how many bytes the file may have, None for any number.

    Returns the file's size in bytes.

    Raises:
        RegardError: a word, layer or head that is not there, references without a word or with findings of one's own,
            a call whose scores a page cannot compute, a file that cannot be written or would be too large, a checkout
            in which the page is not built, or a choice of attention for what has none.
    """
    path = Path(file)
    check_output_file(path, (".html",), "save_page")
    check_page_built()
    page = put_together(
        traces, word=word, references=references, control=control, layers=layers, heads=heads, numbers=numbers,
        steps=steps, title=title, findings=findings, limit=limit, tokens=tokens, key_tokens=key_tokens, batch=batch,
    )  # fmt: skip
    return write_page(page, path, limit)


def put_together(
    traces: Any, *, title: str | None, findings: Sequence[str] | None,
    limit: int | None, word: str | None, references: Trace | Sequence[Trace], control: Sequence[Trace] | None,
    layers: Sequence[int] | None, heads: Sequence[int] | None, numbers: Encoding, steps: bool | Sequence[int],
    tokens: Sequence[Any] | None = None, key_tokens: Sequence[Any] | None = None, batch: int = 0,
) -> Page:  # fmt: skip
    """Put the page of traces, answers or any attention together. Arguments and errors are those of `save_page`."""
    plain = is_attention(traces)
    if not plain and (tokens is not None or key_tokens is not None or batch):
        raise RegardError("save_page: tokens, key_tokens and batch are for attention without a trace: leave them out")
    every = list(traces) if isinstance(traces, list | tuple) else [traces]
    answers = {n: one.page() for n, one in enumerate(every) if isinstance(one, HasPage)}
    if plain or (answers and len(answers) == len(every)):
        chosen = {"word": word, "references": references or None, "control": control, "steps": steps}
        chosen |= {} if plain else {"layers": layers, "heads": heads, "numbers": numbers != "int16"}
        for name, value in chosen.items():
            if value is not None and value is not False:
                raise RegardError(
                    f"save_page: {name} chooses of traces, and {type(every[0]).__name__} has none: leave it out"
                )
        if plain:
            choice = Choice(layers, heads, numbers, limit=limit)
            return attention_page(traces, tokens, key_tokens, batch, choice, title, findings)
        page = join_pages_into_one(list(answers.values()))
        page.title = page.title if title is None else title
        page.findings = page.findings if findings is None else findings
        return page
    shown = cast(
        "Shown | Sequence[Shown]", [one for n, one in enumerate(every) if n not in answers] if answers else traces
    )
    choice = Choice(layers, heads, numbers, steps, limit)
    words = page_reference_traces(references, word, findings)
    neutral = listed_control(control)
    if neutral is not None and not words:
        raise RegardError("control: the word is held against it beside reference words: give references as well")
    page = page_as_seen(shown, choice, word, title=title, findings=findings, references=words, control=neutral)
    add_panels(page, list(answers.values()), sentences=findings is None)
    return page


def page_reference_traces(
    references: Trace | Sequence[Trace], word: str | None, findings: Sequence[str] | None
) -> list[Trace]:
    """Return reference words as a list. Raises RegardError for what is no trace, or nothing would be shown of."""
    listed = listed_references(references)
    if listed and word is None:
        raise RegardError("references: they are words that a word is compared with: give word as well")
    if listed and findings is not None:
        raise RegardError("references: what is found of them is said by the page's own sentences: leave out findings")
    return listed


def write_page(page: Page, file: Path, limit: int | None = LIMIT) -> int:
    """Write a page that was put together; returns the file's size in bytes. Raises RegardError over the limit.

    Args:
        page: what is written.
        file: its ending is .html.
        limit: the most bytes of its numbers, None for any.
    """
    check_page_size(page.numbers.size, limit)
    return write_html(page, file, built_shell(page))


def join_pages_into_one(pages: Sequence[Page]) -> Page:
    """One page of several: their sentences one after another, and a tab for each panel."""
    if len(pages) == 1:
        return pages[0]
    page = Page(f"{pages[0].title} (and {len(pages) - 1} more)")
    page.opening["view"] = "panel 0"
    add_panels(page, pages)
    return page


def page_beside(found: HasPage, traces: Sequence[Trace | PairTrace], choice: Choice, opening: Opening) -> Page:
    """Put together the page of an answer with the attention of its texts, which opens at the answer.

    Raises RegardError for what `page_of` raises.

    choice, opening: as of `page_of`.
    """
    own = found.page()
    page = page_of(traces, choice, opening, title=own.title, findings=own.findings)
    page.opening["view"] = f"panel {len(page.panels)}"
    add_panels(page, [own], sentences=False)
    return page


def add_panels(page: Page, others: Sequence[Page], *, sentences: bool = True) -> None:
    """Add to a page what others show, and say; of panels with one name the later ones have a number behind it.

    The sentences of each begin with its title, so that one sees what they are about.
    """
    for other in others:
        if sentences:
            first, *rest = other.findings or ("",)
            page.findings = [*page.findings, f"{other.title}. {first}".strip(), *rest]
        page.status = list(dict.fromkeys([*page.status, *other.status]))
        page.panels += other.panels
    seen: dict[str, int] = {}
    for panel in page.panels:
        name = str(panel["name"])
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            panel["name"] = f"{name} ({seen[name]})"
