"""`save_page`: traces, and what was found of them or in a store, as one offline HTML file to hover over."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from regard.errors import RegardError
from regard.explain.weights.head_scores import SCORED
from regard.files import check_output_file
from regard.generation.generator import Generated
from regard.questions.generate.answer import Generation, generated
from regard.questions.movement import missing
from regard.questions.see.answer import Seen, listed_traces, seen
from regard.trace.any_attention import is_attention
from regard.trace.trace import Trace
from regard.web.assemble import LIMIT, Choice, Opening, Shown, begun, listed, names_by_difference, page_of, plain_traces
from regard.web.attention_page import attention_page
from regard.web.built_page import check_page_built
from regard.web.html_file import add_panels, join_pages_into_one, write_page
from regard.web.numbers import Encoding
from regard.web.overview import overview_data
from regard.web.page import HasPage, Page


def save_page(
    traces: Any,
    file: str | Path,
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
    numbers: Encoding = "int16",
    steps: bool | Sequence[int] = False,
    title: str | None = None,
    findings: Sequence[str] | None = None,
    limit: int | None = LIMIT,
) -> int:
    """Write traces or any attention to one HTML file that works offline. It is interactive and exact at any length.

    The file has queries and keys, from which it computes weights: its size grows with the text, not with its square.
    regard compares all its weights with those of the trace and writes the largest difference into it.

    Args:
        traces: one or several, of texts, pairs, long texts in windows or generated texts. Two of the same tokens are
            also compared. Or results of `regard.patch_sweep`, `.attribution`, `.score_sources`, `.attribute_to_tokens`,
            `store.senses(word)` or `store.stats()`, alone (with title, findings and limit) or in a list with traces. Or
            any attention that `regard.plot` takes (with layers, heads, numbers, title, findings and limit).
        tokens, key_tokens, batch, grid, image: labels of any attention, an item of its batch and the image whose
            patches are its keys, as `regard.plot` takes them.
        file: its ending is .html.
        word: open at it. Sentences and the first view are then about it.
        references: traces of words to compare it with, such as `model.trace("river")`.
        control: traces of neutral sentences with the word, `model.trace(regard.neutral_sentences("bank"))`. The page
            then reports movement towards references.
        layers, heads: numbers of those to include. Default: all.
        numbers: "int16" (with one scale per vector), or "float32", which is exact and twice as large.
        steps: also include values, hidden states and projections of all layers or of these, to show each step from
            queries to the residual stream.
        title: one line. Default: the text.
        findings: sentences above the views. Default: those of `regard.see(traces, word)`.
        limit: the most bytes of the file, None for any number.

    Returns the file's size in bytes.

    Raises:
        RegardError: there is no such word, layer or head, references come without a word or with findings, a page can't
            compute a call's scores, the file can't be written or would be too large, or the page isn't built.
    """
    chosen: Any = {name: value for name, value in locals().items() if name != "file"}
    path = Path(file)
    check_output_file(path, (".html",), "save_page")
    check_page_built()
    return write_page(put_together(**chosen), path, limit)


def put_together(
    traces: Any, *, title: str | None = None, findings: Sequence[str] | None = None, limit: int | None = LIMIT,
    word: str | None = None, references: Trace | Sequence[Trace] = (), control: Sequence[Trace] | None = None,
    layers: Sequence[int] | None = None, heads: Sequence[int] | None = None, numbers: Encoding = "int16",
    steps: bool | Sequence[int] = False,
    tokens: Sequence[Any] | None = None, key_tokens: Sequence[Any] | None = None, batch: int = 0,
    grid: Sequence[int] | None = None, image: Any = None,
) -> Page:  # fmt: skip
    """Put the page of traces, answers or any attention together. Arguments and errors are those of `save_page`."""
    plain = is_attention(traces)
    if not plain and (batch or any(each is not None for each in (tokens, key_tokens, grid, image))):
        labels = "tokens, key_tokens, batch, grid and image"
        raise RegardError(f"save_page: {labels} are for attention without a trace: leave them out")
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
            return attention_page(traces, tokens, key_tokens, batch, choice, title, findings, grid, image)
        page = join_pages_into_one(list(answers.values()))
        page.title = page.title if title is None else title
        page.findings = page.findings if findings is None else findings
        return page
    shown = cast(
        "Shown | Sequence[Shown]", [one for n, one in enumerate(every) if n not in answers] if answers else traces
    )
    choice = Choice(layers, heads, numbers, steps, limit)
    words = listed_traces("references", references)
    if words and word is None:
        raise RegardError("references needs word: pass the word that you compare with them")
    if words and findings is not None:
        raise RegardError("findings replaces the sentences about references: pass only one of them")
    neutral = None if control is None else listed_traces("control", control)
    if neutral is not None and not words:
        raise RegardError("control needs references: pass both")
    page = page_as_seen(shown, choice, word, title=title, findings=findings, references=words, control=neutral)
    add_panels(page, list(answers.values()), sentences=findings is None)
    return page


def page_as_seen(
    traces: Shown | Sequence[Shown],
    choice: Choice | None = None,
    word: str | None = None,
    *,
    title: str | None = None,
    names: Sequence[str] | None = None,
    findings: Sequence[str] | None = None,
    references: Sequence[Trace] = (),
    control: Sequence[Trace] | None = None,
) -> Page:
    """Put together the page of some traces with what `see` says of them, and of a word its movement."""
    each, choice = listed(traces), choice or Choice()
    begun(each, choice)  # refuses what is too large before anything is computed
    names = names_by_difference(plain_traces(each)) if names is None else names
    found = seen_on_page(each, word, references, control, names) if findings is None else list(findings)
    if isinstance(found, list):
        page = page_of(each, choice, Opening(word=word), title=title, names=names, findings=found)
        page.overview = overview_data(page, plain_traces(each))
        return page
    page = found.page(choice)
    page.title = page.title if title is None else title
    return page


def seen_on_page(
    traces: Sequence[Any],
    word: str | None,
    references: Sequence[Any] = (),
    control: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
) -> Seen | Generation | list[str]:
    """Look at the traces of a page, of what a model wrote as well, or return what the page says instead."""
    plain: list[Any] = [each.trace if isinstance(each, Generated) else each for each in traces]
    sides = [side for each in plain for side in (each.windows if each.windowed else each.sides)]
    if max(len(side.tokens) for side in sides) > SCORED:
        why = f"a text has more than {SCORED:,} tokens"
    elif len({bool(each.windowed) for each in plain}) > 1:
        why = "some texts are read in windows and others are not"
    else:
        try:
            if word is None and len(traces) == 1 and plain[0] is not traces[0] and isinstance(plain[0], Trace):
                return replace(generated(traces[0]), names=names)
            return replace(seen(plain, word, references=references, control=control), read=traces, names=names)
        except RegardError:
            if word is not None:
                raise
            why = ""
    return [] if word is None else [missing(word, why)]
