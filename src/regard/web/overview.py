"""Write the data of a page's first view, of a short text or of two with a followed word: the most distinctive links."""

from collections.abc import Sequence
from typing import Any

from regard.explain.texts.summary import Summary
from regard.explain.weights.specific_weights import distinctive_pairs
from regard.trace.trace import Trace
from regard.web.add_traces import chosen_calls
from regard.web.page import Page
from regard.web.score_rules import Data

LONGEST = 48  # tokens of a text


def overview_data(page: Page, summary: Summary, traces: Sequence[Any], *, chosen: bool) -> Data | None:
    """Write what the first view needs beside queries and keys; None for texts that it doesn't show.

    page: with its texts and calls. chosen: whether the page opens at a layer or head that was asked for.
    """
    occurrences = summary.occurrences
    one_each = summary.word is None or [occurrence.text for occurrence in occurrences] == [*range(len(traces))]
    if len(traces) > (1 if summary.word is None else 2) or not one_each:
        return None
    links, at = [], 0
    for number, trace in enumerate(traces):
        if not isinstance(trace, Trace) or trace.patches is not None or not 0 < len(trace.tokens) <= LONGEST:
            return None
        calls = page.calls[at : at + len(page.calls) // len(traces)]
        layers: list[Any] = [call["layer"] for call in calls]
        self_attention = all(call["queries"] == call["keys"] == number for call in calls)
        if not self_attention or len(set(layers)) < len(chosen_calls(page, trace.attention)):
            return None
        heads = [*range(trace.attention[layers[0]].shape[0])] if page.heads is None else [*page.heads]
        named = summary.highlights[number].links if len(traces) == 1 and summary.highlights else []
        first = [(link.query, link.key, link.layer, link.head, link.weight, link.divergence) for link in named]
        others = distinctive_pairs(trace, [sink.token for sink in summary.sinks[number]], layers, heads)
        pairs = {pair[:2]: pair for pair in [*others, *first]}  # as the sentences name them, if they do
        links.append([
            [q, k, at + layers.index(layer), heads.index(h), round(weight, 4)]
            for q, k, layer, h, weight, _ in dict.fromkeys([*(pairs[link[:2]] for link in first), *pairs.values()])
            if layer in layers and h in heads
        ])  # fmt: skip
        at += len(calls)
    difference = summary.difference
    return {
        "model": traces[0].status.model, "chosen": chosen, "links": links,
        "tokens": [place.tokens[0] for place in occurrences],
        "difference": None if difference is None else {
            "words": list(difference.words),
            **{name: [None if value is None else round(value, 6) for value in getattr(difference, name)]
               for name in ("mean", "low", "high")},
        },
    }  # fmt: skip
