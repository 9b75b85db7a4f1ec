"""Build the page of traces: their texts, attention calls and findings, and the view it opens with.

The size is estimated before anything is computed, so that a page too large for browsers raises an error immediately.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from regard.attention.attention_map import AttentionMap
from regard.checks import chosen_numbers, megabytes
from regard.errors import RegardError, control_name
from regard.explain.weights.alignment import Alignment, align, choose, why_these_layers
from regard.explain.wording import capital
from regard.generation.generator import Generated
from regard.models.windows import WindowedTrace, sides
from regard.text.quoting import short
from regard.text.words import wordlike
from regard.trace.layers import kept_numbers
from regard.trace.trace import PairTrace, Trace
from regard.web.add_traces import Added, add_pair, add_trace
from regard.web.numbers import vector_bytes_in_page
from regard.web.page import Page, model_name, status_lines

LIMIT = 200_000_000  # bytes: browsers are slow to open larger files
LINE = 80  # characters of a title
CHANGES = ("ablated: ", "patched: ", "steered: ")  # prefixes of status notes about interventions
Shown = Trace | PairTrace | WindowedTrace | Generated


def estimated_size(traces: Sequence[Trace | PairTrace | WindowedTrace], page: Page) -> int:
    """Return the maximum size in bytes of a page's queries, keys and row statistics as base64."""
    total = 0
    for side in (side for trace in traces for side in sides(trace)):
        for maps in (side.attention, side.cross):
            for call in maps.calls:
                if page.layers is None or call[0] in page.layers:
                    total += call_bytes(maps[call], page.heads)
    return total * 4 // 3


def call_bytes(weights: AttentionMap, heads: Sequence[int] | None = None) -> int:
    """Return a map's maximum size on a page in bytes, before compression. heads: those included, None for all."""
    count, length, size = weights.shape
    count = count if heads is None else len(heads)
    if weights.given is not None:
        return 4 * count * length * size
    vectors = (tensor.shape[1:] for tensor in (weights.query, weights.key))  # (H, L, D) and (G, S, D)
    return sum(vector_bytes_in_page((min(count, n), *rest)) for n, *rest in vectors) + 8 * count * length


def check_page_size(size: int, limit: int | None) -> None:
    """Raise RegardError if a page's size in bytes exceeds the limit (None: no limit)."""
    if limit is not None and size > limit:
        usual = "leave out layers (layers=, --html-with layers=0,3-5), heads (heads=) or steps"
        smaller = control_name("page", f"{usual}, or raise the limit (limit=)")
        raise RegardError(f"page: it would have about {megabytes(size)}, the limit is {megabytes(limit)}: {smaller}")


@dataclass(frozen=True)
class Choice:
    """The parts of the traces to include in a page.

    layers, heads: the layer and head numbers to include, None for all. steps: whether to include values, hidden states
    and projections, or the layers for which to include them. limit: the maximum estimated size in bytes, None for no
    limit.
    """

    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None
    steps: bool | Sequence[int] = False
    limit: int | None = LIMIT


@dataclass(frozen=True)
class Opening:
    """The selection a page opens with. layer: -1 for the last, None for the first. head: None for the mean of heads.

    word: select its first token in the first text that has it. trace: without a word, the trace to open, counted
    from 0. token: the token to select in that trace's first text. key: a token it attends to, for the map's cursor.
    """

    view: str = "tokens"
    layer: int | None = None
    head: int | None = None
    word: str | None = None
    token: int | None = None
    trace: int = 0
    key: int | None = None


def page_of(
    traces: Shown | Sequence[Shown],
    choice: Choice | None = None,
    opening: Opening | None = None,
    *,
    title: str | None = None,
    names: Sequence[str] | None = None,
    findings: Sequence[str] = (),
    alignments: Sequence[Alignment] = (),
) -> Page:
    """Build the page of traces, with texts, attention calls, head scores, findings and status.

    alignments: those of the pairs, whose layers the caller explains. Default: the page chooses and explains the layers.
    """
    traces = listed(traces)
    choice = choice or Choice()
    page, plain = begun(traces, choice, title), plain_traces(traces)
    if page.values_alone:
        page.steps_of = ((opening.layer if opening else None) or 0,)
    page.findings = findings
    names = names_by_difference(plain) if names is None else names
    places = [_add_texts_of_trace(page, trace, n, len(plain), names) for n, trace in enumerate(plain)]
    _add_alignments(page, plain, places, alignments)
    if not page.calls:
        raise RegardError("page: the traces don't have the chosen attention")
    _add_comparisons(page, plain, places)
    if not page.values_alone:
        size, near = megabytes(page.steps_size), "within 1.6e-5 of their vector's largest number"
        page.optional = f"Values, hidden states and projections, for Steps, take {size} of this file, {near}."
        page.status.insert(0, page.optional)
    page.status = status_lines([trace.status for trace in plain], page) + page.status
    _set_opening(page, plain, places, opening or Opening())
    check_page_size(page.numbers.size, choice.limit)  # with steps
    return page


def begun(traces: Sequence[Shown], choice: Choice, title: str | None = None) -> Page:
    """Check traces and the size of their page, and return the page without texts and calls."""
    if not traces:
        raise RegardError("page: got no trace, expected at least one")
    for trace in traces:
        if not isinstance(trace, Shown):
            kind = type(trace).__name__
            raise RegardError(f"page: got {kind}, expected traces, such as model.trace(text), or attention")
    plain = plain_traces(traces)
    steps = choice.steps if isinstance(choice.steps, bool) else chosen_numbers("layer", choice.steps)
    page = Page(
        title or title_of(plain),
        model=model_name([trace.status for trace in plain]),
        layers=chosen_numbers("layer", choice.layers),
        heads=chosen_numbers("head", choice.heads),
        steps_of=() if steps is False else None if steps is True else steps,
        values_alone=steps is False,
        tokens=sum(len(side.tokens) for trace in plain for side in sides(trace)),
    )
    check_page_size(estimated_size(plain, page), choice.limit)
    return page


def plain_traces(traces: Sequence[object]) -> list[Any]:
    """Replace generated texts by their traces."""
    return [trace.trace if isinstance(trace, Generated) else trace for trace in traces]


def listed(traces: object) -> list[Any]:
    """Return traces or attention as a list. A single object becomes a list of one."""
    return list(traces) if isinstance(traces, list | tuple) else [traces]


def title_of(traces: Sequence[Trace | PairTrace | WindowedTrace]) -> str:
    """Return the title of a page: its first text, shortened, and the number of other texts."""
    first = traces[0].encoder.text if isinstance(traces[0], PairTrace) else traces[0].text
    line = " ".join(first.split()) or "an empty text"
    others = f" (and {len(traces) - 1} more)" if len(traces) > 1 else ""
    return (line if len(line) <= LINE else line[: LINE - 1] + "…") + others


def names_by_difference(traces: Sequence[Trace | PairTrace | WindowedTrace]) -> list[str] | None:
    """Name traces by their differences in model, dtype and interventions. Returns None if there are none."""
    properties = [
        (trace.status.model, trace.status.dtype, "; ".join(n for n in trace.status.notes if n.startswith(CHANGES)))
        for trace in traces
    ]
    differ = [len(set(kind)) > 1 for kind in zip(*properties, strict=True)]
    if not any(differ):
        return None
    labels = [", ".join(part for part, shown in zip(row, differ, strict=True) if shown and part) for row in properties]
    return [f"text {n}" + f" ({short(label, LINE)})" * bool(label) for n, label in enumerate(labels, 1)]


def _add_texts_of_trace(
    page: Page, trace: Trace | PairTrace | WindowedTrace, number: int, count: int, names: Sequence[str] | None = None
) -> list[Added]:
    """Add one of several traces to a page. Returns an `Added` for each of its texts (source and target, or windows)."""
    nth = f", {names[number]}" if names is not None else "" if count == 1 else f" {number + 1}"
    if isinstance(trace, PairTrace):
        return list(add_pair(page, trace, f"source{nth}", f"target{nth}"))
    if isinstance(trace, WindowedTrace):
        windows = len(trace.windows)
        text = f"{names[number]}, " if names is not None else f"text{nth}, " if nth else ""
        return [
            add_trace(page, window, f"{text}window {n + 1} of {windows}, tokens {first} to {stop - 1}")
            for n, (window, (first, stop)) in enumerate(zip(trace.windows, trace.spans, strict=True))
        ]
    return [add_trace(page, trace, f"text {number + 1}" if names is None else names[number])]


def _add_alignments(
    page: Page, traces: Sequence[Any], places: Sequence[Sequence[Added]], alignments: Sequence[Alignment]
) -> None:
    """Add each pair's word alignment to a page, if the page has calls of its cross-attention.

    The best layer is the one whose rows attend to the source of the next generated token, over all pairs if these have
    the same layers. If the page lacks that layer, the first of its layers is the best.
    """
    chosen: Sequence[Alignment | None] = alignments or [None] * len(traces)
    pairs = [
        (trace, added[1].cross, alignment) for trace, added, alignment in zip(traces, places, chosen, strict=True)
        if isinstance(trace, PairTrace) and added[1].cross and kept_numbers(trace.decoder.cross)
        and trace.encoder.tokens and trace.decoder.tokens
    ]  # fmt: skip
    together = len({tuple(kept_numbers(pair.decoder.cross)) for pair, *_ in pairs}) == 1
    layers = choose([pair for pair, *_ in pairs]) if together and not alignments else None
    notes = []
    for n, (pair, calls, passed) in enumerate(pairs, 1):
        alignment = passed or align(pair, layers=layers)
        by_layer = {layer: number for (layer, nth), number in reversed(calls.items())}
        best = by_layer.get(alignment.written_layer, next(iter(calls.values())))
        if passed is None:
            name = f"text {n}: " if len(pairs) > 1 and not together else ""
            notes.append(f"{capital(name + why_these_layers(alignment, len(pairs) if together else 1))}.")
        if alignment.written_layer not in by_layer:
            notes.append(f"This page lacks layer {alignment.written_layer}, which shows words being written.")
        opening = {"call": best, "head": _head_on_page(page, alignment.head)}
        page.alignment.append({"calls": [*calls.values()], "best": opening})
        page.overview = {"kind": "pair"}
    page.status += dict.fromkeys(notes)  # the same for texts whose layers were chosen together


def _add_comparisons(
    page: Page, traces: Sequence[Trace | PairTrace | WindowedTrace], places: Sequence[Sequence[Added]]
) -> None:
    """Add comparisons to a page, each between a text and the first earlier text with the same tokens."""
    texts = [(trace, added[0]) for trace, added in zip(traces, places, strict=True) if isinstance(trace, Trace)]
    for n, (after, second) in enumerate(texts):
        for before, first in texts[:n]:
            if before.tokens and [token.id for token in before.tokens] == [token.id for token in after.tokens]:
                if shared := [key for key in first.calls if key in second.calls]:
                    names = str(page.texts[first.text]["name"]), str(page.texts[second.text]["name"])
                    page.comparisons.append({
                        "name": comparison_name(before, after, names),
                        "before": [first.calls[key] for key in shared], "after": [second.calls[key] for key in shared],
                    })  # fmt: skip
                break


def _set_opening(
    page: Page, traces: Sequence[Trace | PairTrace | WindowedTrace], places: Sequence[Sequence[Added]], opening: Opening
) -> None:
    """Set the view, call, head and token that a page opens with."""
    texts = [
        pair for trace, added in zip(traces, places, strict=True) for pair in zip(sides(trace), added, strict=True)
    ]
    layer, token, at = opening.layer, opening.token, sum(map(len, places[: opening.trace]))
    if opening.word is not None:
        at, token = _first_text_with_word(texts, opening.word)
    side, added = texts[at]
    calls = added.cross if opening.view == "alignment" and added.cross else added.calls or added.cross
    if opening.view == "alignment" and page.alignment:
        best = page.alignment[0]["best"]
        assert isinstance(best, dict)
        page.opening |= {"view": "overview", "call": best["call"], "head": best["head"]}
        return
    head = opening.head
    if head is not None:
        count = side.attention[next(iter(calls))].shape[0] if calls and added.calls else 0
        head = head % count if count else head
        head = _head_on_page(page, head)
    numbers = list(calls.values()) or [0]
    if layer is not None:
        layer = layer % len(side.attention) if len(side.attention) else layer
        numbers = [number for (call_layer, _), number in calls.items() if call_layer == layer] or numbers
    token = told_token(side, page.findings) if token is None else token
    page.opening |= {"view": opening.view, "call": numbers[0], "head": head, "token": token}
    page.opening |= {} if opening.key is None else {"key": opening.key}


def _head_on_page(page: Page, head: int | None) -> int | None:
    """Return the place of a head among those of a page, None if the page lacks it."""
    if head is None or page.heads is None:
        return head
    return page.heads.index(head) if head in page.heads else None


def told_token(side: Trace, findings: Sequence[str]) -> int | None:
    """Return the token to select if no word was requested: of the first word in findings, or of the last word."""
    for word in re.findall("“([^“”]+)”", " ".join(findings)):
        with suppress(RegardError):
            return side.word(word)[0].tokens[0]
    words = [n for n, token in enumerate(side.tokens) if not token.special and wordlike(token.characters)]
    return words[-1] if words else None


def _first_text_with_word(texts: Sequence[tuple[Trace, Added]], word: str) -> tuple[int, int]:
    """Return the index of the first text that has a word, and the word's first token. Raises RegardError if none."""
    for at, (side, _) in enumerate(texts):
        with suppress(RegardError):
            return at, side.word(word)[0].tokens[0]
    return 0, texts[0][0].word(word)[0].tokens[0]  # raises the error for the first text


def comparison_name(before: Trace, after: Trace, names: tuple[str, str]) -> str:
    """Return the name of a comparison: the interventions in the second pass, or the names of both texts."""
    done = [note for note in after.status.notes if note not in before.status.notes]
    if done and not set(before.status.notes) - set(after.status.notes):
        return f"before and after: {', '.join(note.removesuffix('.') for note in done)}"
    return " and ".join(names)
