"""Write traces, results or any attention to one interactive offline HTML file (`regard.save_page`).

Attention without a trace can be labelled maps, recorded calls or tensors.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.attention.given_map import of_heads
from regard.attention.region_scores import weights_kept
from regard.checks import chosen_numbers
from regard.errors import RegardError
from regard.explain.weights.head_scores import SCORED
from regard.explain.wording import named, number
from regard.files import check_output_file
from regard.images import Patches, read_picture
from regard.models.windows import longest, sides
from regard.questions.generate.answer import Generation, generated
from regard.questions.movement import missing
from regard.questions.see.answer import Seen, listed_traces, seen
from regard.text.tokens import Token
from regard.trace.any_attention import PatchGrid, ShownMap, is_attention, labelled, named_maps
from regard.trace.trace import Trace
from regard.web.assemble import (
    LIMIT,
    Choice,
    Opening,
    Shown,
    begun,
    call_bytes,
    check_page_size,
    listed,
    names_by_difference,
    page_of,
    plain_traces,
)
from regard.web.call import DENSE, CallName, call_data
from regard.web.html_file import add_panels, check_page_built, join_pages_into_one, write_page
from regard.web.page import HasPage, Page, status_lines, text_data


def attention_page(
    attention: Any, tokens: Sequence[Any] | None, key_tokens: Sequence[Any] | None, batch: int, choice: Choice,
    title: str | None, findings: Sequence[str] | None, grid: Sequence[int] | None = None, image: Any = None,
) -> Page:  # fmt: skip
    """Build the page of attention maps, calls or tensors. For arguments and errors, see `save_page`."""
    layers, heads = chosen_numbers("layer", choice.layers), chosen_numbers("head", choice.heads)
    picture = None if image is None else read_picture(image)
    shown: list[ShownMap] = []
    images: dict[tuple[str, ...], tuple[str, Patches | None]] = {}  # by token names
    for entry in named_maps(attention, layers):
        queries, keys = tokens, key_tokens
        if grid is not None or picture is not None:
            fitted = PatchGrid.of(entry, grid)
            names, square = fitted.tokens(), entry.weights.full_shape[2] == entry.weights.full_shape[3]
            queries, keys = names if square and tokens is None else tokens, names if key_tokens is None else key_tokens
            patches = None
            if picture is not None:
                width, height = map(float, picture.size)
                patches = Patches(picture, fitted.rows, fitted.columns, fitted.first, (0.0, 0.0, width, height))
            images[tuple(token.text for token in names)] = f"image, {fitted}", patches
        shown.append(labelled(entry, queries, keys, batch))
    maps, size = [of_heads(entry.weights, heads, entry.layer or 0) for entry in shown], 0
    for entry, weights in zip(shown, maps, strict=True):  # check sizes before anything is computed
        count = weights.shape[0] * weights.shape[1] * weights.shape[2]
        if weights.given is not None and count > DENSE:
            raise RegardError(
                f"page: {entry.name or 'the map'} has {count:,} weights without queries and keys, {DENSE:,} are the "
                "most: choose heads (heads=), or draw it with regard.plot"
            )
        size += call_bytes(weights)
    check_page_size(size * 4 // 3, choice.limit)
    sizes = {tuple(weights.shape) for weights in maps}
    alike = ", {} heads of {} × {} tokens".format(*sizes.pop()) if len(sizes) == 1 else ""
    called = f"attention weights of {len(shown)} calls{alike}" if shown[1:] else shown[0].name or "attention weights"
    page = Page(title or called + shown[0].item, findings or (), layers=layers, heads=heads)
    calls: dict[int, int] = {}
    texts: dict[tuple[str, ...], int] = {}
    for entry, weights in zip(shown, maps, strict=True):
        token_texts, layer = [tuple(token.text for token in labels.tokens) for labels in entry.labels], entry.layer or 0
        for role, labels, words in zip(("queries", "keys"), entry.labels, token_texts, strict=True):
            if words not in texts:
                name = f"{'tokens' if token_texts[0] == token_texts[1] else role} {len(texts) + 1}"
                name, patches = images.get(words, (name, None))
                texts[words] = page.add_text(text_data(name, labels.text, labels.tokens, patches=patches))
        nth, path = calls.get(layer, 0), entry.name or "attention"
        call = CallName(layer, nth, texts[token_texts[0]], texts[token_texts[1]], path=path)
        calls[layer] = call.nth + 1
        chosen = None if weights.shape[0] == entry.weights.shape[0] else heads
        page.add_call(call_data(weights, call, page.numbers, head_numbers=chosen))
    exact = f"The weights on this page are within {page.largest_difference():.1e} of those of the calls."
    grids = dict.fromkeys(f"Tokens of an {name}." for name, _ in images.values())
    weights_of = {entry.layer or 0: entry.weights for entry in shown}
    if "picture" in page.texts[0]:
        page.overview = {"kind": "image"}
    elif len(page.texts) == 1:
        page.overview = page.texts_stage([(shown[0].labels[0].tokens, weights_of)])
        page.findings = page.findings or strongest_link(page, shown[0].labels[0].tokens)
    page.opening["view"] = "overview" if page.overview else "map"
    page.status = [exact, *grids, *status_lines([], page)[1:]]
    return page


def strongest_link(page: Page, tokens: Sequence[Token]) -> list[str]:
    """Return a list with a sentence about a short text's most distinctive link, empty if there is no such link."""
    data: Any = page.overview or {"links": [None]}
    if not data["links"][0]:
        return []
    query, key, call, h, weight, _ = data["links"][0][0]
    data = page.calls[call]
    head = f"layer {data['layer']}, head {(data['head_numbers'] or [*range(data['heads'])])[h]}"
    return [f"{named(tokens, query)} attends unusually strongly to {named(tokens, key)} ({number(weight)}, {head})."]


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
    steps: bool | Sequence[int] = False,
    title: str | None = None,
    findings: Sequence[str] | None = None,
    limit: int | None = LIMIT,
) -> int:
    """Write traces or any attention to one HTML file that works offline. It is interactive and exact at any length.

    The page computes weights from queries and keys, so the file grows linearly with the text's length. regard compares
    all weights of the page with those of the trace and writes the largest difference into the file.

    Args:
        traces: one or more traces of texts, pairs, long texts in windows or generated texts. If two have the same
            tokens, they are also compared. Or results of `regard.patch_sweep`, `.attribution`, `.score_sources`,
            `.attribute_to_tokens`, `store.senses(word)` or `store.stats()`, alone (with title, findings and limit) or
            with traces. Or attention as in `regard.plot` (with layers, heads, title, findings and limit).
        tokens, key_tokens, batch, grid, image: for attention without a trace, see `regard.plot`.
        file: the name of an .html file.
        word: a word to open the page at. Sentences and the first view are then about this word.
        references: traces of words to compare it with, such as `model.trace("river")`.
        control: traces of neutral sentences with the word, `model.trace(regard.neutral_sentences("bank"))`. The page
            then reports movement towards references.
        layers, heads: the layer and head numbers to include. Default: all.
        steps: also include values, hidden states and projections, for all layers or for these, to show each step from
            queries to the residual stream.
        title: a one-line title. Default: the text.
        findings: sentences above the views. Default: those of `regard.see(traces, word)`.
        limit: the maximum size of the file in bytes, None for any size.

    Returns the file's size in bytes.

    Raises:
        RegardError: a word, layer or head doesn't exist, references are passed without a word or with findings, a page
            can't compute a call's scores, the file can't be written or would be too large, or the page isn't built.
    """
    chosen: Any = {name: value for name, value in locals().items() if name != "file"}
    path = Path(file)
    check_output_file(path, (".html",), "save_page")
    check_page_built()
    return write_page(put_together(**chosen), path, limit)


def put_together(
    traces: Any, *, title: str | None = None, findings: Sequence[str] | None = None, limit: int | None = LIMIT,
    word: str | None = None, references: Trace | Sequence[Trace] = (), control: Sequence[Trace] | None = None,
    layers: Sequence[int] | None = None, heads: Sequence[int] | None = None,
    steps: bool | Sequence[int] = False,
    tokens: Sequence[Any] | None = None, key_tokens: Sequence[Any] | None = None, batch: int = 0,
    grid: Sequence[int] | None = None, image: Any = None,
) -> Page:  # fmt: skip
    """Build the page of traces, answers or any attention. For arguments and errors, see `save_page`."""
    plain = is_attention(traces)
    if not plain and (batch or any(argument is not None for argument in (tokens, key_tokens, grid, image))):
        labels = "tokens, key_tokens, batch, grid and image"
        raise RegardError(f"save_page: {labels} are for attention without a trace: leave them out")
    items: list[Any] = listed(traces)
    answers = {n: item.page() for n, item in enumerate(items) if isinstance(item, HasPage)}
    if plain or (answers and len(answers) == len(items)):
        chosen = {"word": word, "references": references or None, "control": control, "steps": steps}
        chosen |= {} if plain else {"layers": layers, "heads": heads}
        for name, value in chosen.items():
            if value is not None and value is not False:
                raise RegardError(
                    f"save_page: {name} chooses of traces, and {type(items[0]).__name__} has none: leave it out"
                )
        if plain:
            choice = Choice(layers, heads, limit=limit)
            return attention_page(traces, tokens, key_tokens, batch, choice, title, findings, grid, image)
        page = join_pages_into_one(list(answers.values()))
        page.title = page.title if title is None else title
        page.findings = page.findings if findings is None else findings
        return page
    shown: Any = [item for n, item in enumerate(items) if n not in answers] if answers else traces
    choice = Choice(layers, heads, steps, limit)
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
    """Build the page of traces with the results of `see`: findings, and a word's movement towards references."""
    traces, choice = listed(traces), choice or Choice()
    begun(traces, choice)  # raises an error if the page would be too large
    plain = plain_traces(traces)
    names = names_by_difference(plain) if names is None else names
    with weights_kept(weights for trace in plain for side in sides(trace) for _, weights in side.attention.items()):
        result = seen_on_page(traces, word, references, control, names) if findings is None else list(findings)
        if isinstance(result, list):
            page = page_of(traces, choice, Opening(word=word), title=title, names=names, findings=result)
            page.overview = page.overview_of(plain)
            return page
        page = result.page(choice)
    page.title = page.title if title is None else title
    return page


def seen_on_page(
    traces: Sequence[Any],
    word: str | None,
    references: Sequence[Any] = (),
    control: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
) -> Seen | Generation | list[str]:
    """Return the results of `see` or `generated` for a page's traces, or sentences if they can't be computed."""
    plain: list[Any] = plain_traces(traces)
    if max(map(longest, plain)) > SCORED:
        reason = f"a text has more than {SCORED:,} tokens"
    elif len({bool(trace.windowed) for trace in plain}) > 1:
        reason = "some texts are read in windows and others are not"
    else:
        try:
            if word is None and len(traces) == 1 and plain[0] is not traces[0] and isinstance(plain[0], Trace):
                return replace(generated(traces[0]), names=names)
            return replace(seen(plain, word, references=references, control=control), read=traces, names=names)
        except RegardError:
            if word is not None:
                raise
            reason = ""
    return [] if word is None else [missing(word, reason)]
