"""Put the page of long texts together: their tokens, and calls whose weights a browser asks for tile by tile."""

from collections.abc import Sequence
from contextlib import suppress

from regard.attention.attention_map import AttentionMap
from regard.errors import RegardError
from regard.models.windows import WindowedTrace
from regard.questions.movement import missing
from regard.server.page_cache import CachedPage
from regard.server.tiles import ZoomMap
from regard.text.tokens import Token
from regard.trace.layer_subset import call_numbers
from regard.trace.trace import PairTrace, Trace
from regard.web.assemble import title_of, told_token
from regard.web.call import CallName
from regard.web.page import Page, status_lines, text_data
from regard.web.score_rules import Data


def long_page(traces: Sequence[Trace | PairTrace | WindowedTrace], word: str | None = None) -> CachedPage:
    """Put together the page of texts that are too long for a browser to compute with."""
    page, maps = Page(title_of(traces), model=traces[0].status.model), {}
    for number, trace in enumerate(traces):
        if not isinstance(trace, Trace):
            raise RegardError(
                "a text this long is served of models that read it whole, one text each: leave out windows"
            )
        name = f"text {number + 1}" if len(traces) > 1 else "text"
        text = page.add_text(text_data(name, trace.text, trace.tokens))
        for layer, nth in call_numbers(trace.attention):
            weights = trace.attention[layer, nth]
            call = page.add_call(_tiled_call(weights, CallName(layer, nth, text, text)))
            maps[call] = ZoomMap(weights)
    if not page.calls:
        raise RegardError("the traces hold no attention")
    page.status = [
        *status_lines([trace.status for trace in traces if isinstance(trace, Trace)], Page("")),
        "Means and weights are computed where this page was served from, when they are looked at.",
    ]
    if word is not None:
        page.findings = [missing(word, "a text is too long for a browser to compute with")]
    at, token = _chosen([trace for trace in traces if isinstance(trace, Trace)], word)
    first = next(n for n, call in enumerate(page.calls) if call["queries"] == at)
    page.opening = {"view": "map", "call": first, "head": 0, "token": token}
    return CachedPage(page, maps)


def _chosen(traces: Sequence[Trace], word: str | None) -> tuple[int, int | None]:
    """Return the text and token that a page opens at: the first of the word, else the last word of the first text."""
    for n, trace in enumerate(traces if word is not None else ()):
        with suppress(RegardError):
            return n, trace.word(str(word))[0].tokens[0]
    return 0, told_token(traces[0], [])


def map_page(weights: AttentionMap, title: str) -> CachedPage:
    """Put together the page of one attention map (H, L, S) without a text: its tokens have numbers for names.

    A map of several texts is one of the first.
    """
    page = Page(title)
    _, length, size = weights.shape
    sides = [length] if length == size else [length, size]
    texts = [
        page.add_text(text_data(name, "", [Token(0, str(n), 0, 0, None, False) for n in range(count)]))
        for name, count in zip(("queries", "keys"), sides, strict=False)
    ]
    call = page.add_call(_tiled_call(weights, CallName(0, 0, texts[0], texts[-1])))
    page.opening = {"view": "map", "call": 0, "head": 0, "token": length - 1}  # whose largest weight the map goes to
    page.status = [f"An attention map of {weights.shape[0]} heads, {length:,} queries and {size:,} keys, from a file."]
    return CachedPage(page, {call: ZoomMap(weights)})


def _tiled_call(weights: AttentionMap, name: CallName) -> Data:
    """What a page says of a call whose weights are asked for: everything but numbers."""
    heads, length, size = weights.shape
    simple = None if weights.rule.mask is None else weights.rule.mask.simplified(length, size)
    band = None if simple is None or not simple.only_band else {"kind": "band", "low": simple.low, "high": simple.high}

    def nowhere(*shape: int) -> Data:
        return {"values": {"at": -1, "dtype": "float32", "shape": list(shape)}, "scales": None}

    width, key_heads = weights.query.shape[-1], weights.key.shape[1]
    return name.data(weights) | {
        "head_numbers": None, "query": nowhere(heads, length, width), "key": nowhere(key_heads, size, width),
        "row_max": nowhere(heads, length)["values"], "row_sum": nowhere(heads, length)["values"],
        "mask": band, "bias": None, "sinks": None, "difference": 0.0, "overview": None, "norms": None, "served": True,
    }  # fmt: skip
