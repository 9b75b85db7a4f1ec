"""Write the data of a page's first view. Each kind has a stage of its own on the page, in web/src/views/overview."""

from collections.abc import Sequence
from typing import Any

from regard.explain.texts.highlights import MAX_WEIGHTS, Link, standing_out
from regard.explain.texts.summary import Summary
from regard.explain.wording import ROUNDING
from regard.models.windows import WindowedTrace
from regard.text.tokens import Token
from regard.trace.trace import Trace
from regard.web.numbers import Data
from regard.web.page import Page

LONGEST = 48  # tokens of a text
MOST_CELLS = 1000  # tokens by states, whose three likeliest tokens are written


def overview_data(
    page: Page, traces: Sequence[Any], summary: Summary | None = None, *, chosen: bool = False
) -> Data | None:
    """Write what the first view needs beside queries and keys; None for texts that no stage shows.

    page: with its texts and calls. chosen: whether the page opens at a layer or head that was asked for.
    """
    traces = [side for trace in traces for side in (trace.windows if isinstance(trace, WindowedTrace) else [trace])]
    if page.alignment:
        return {"kind": "pair"}
    if not all(isinstance(trace, Trace) for trace in traces):
        return None
    if any(trace.patches is not None for trace in traces):
        return {"kind": "image"} if len(traces) == 1 else None
    return texts_stage(page, [(trace.tokens, trace.attention) for trace in traces], summary, chosen=chosen)


def texts_stage(
    page: Page, texts: Sequence[tuple[Sequence[Token], Any]], summary: Summary | None = None, *, chosen: bool = False
) -> Data | None:
    """Write the most distinctive links of short texts (tokens and weights), and where each has a followed word."""
    links: list[Any] = []  # None for a long text: what stands out in it is where the page opens
    shapes: set[Any] = set()
    for number, (tokens, attention) in enumerate(texts):
        calls, heads = self_attention(page, number)
        if not (tokens and calls):
            return None
        shapes.add((*(token.id for token in tokens), len(calls), len(heads)))
        if len(tokens) > LONGEST:
            links.append(None)
            continue
        named: Any = summary.highlights[number].links if summary and summary.highlights else []
        occurrences = summary.occurrences if summary and not summary.windows else []
        followed = [(word, word.link) for word in occurrences if word.link and word.text == number]
        for word, link in sorted(followed, key=lambda pair: pair[1].weight):
            at = word.tokens[0]  # of several tokens, link.weight is the mean
            weight = link.weight if len(word.tokens) < 2 else float(attention[link.layer][link.head, at, link.token])
            named = [Link(link.layer, link.head, at, word.word, link.token, link.text, weight, 0.0), *named]
        sinks: Any = page.texts[number]["tokens"]
        links.append([
            [q, k, calls[layer], heads.index(h), round(weight, 4)]
            for q, k, layer, h, weight in standing_out(tokens, attention, named, sinks["sinks"], [*calls], heads)
            if layer in calls and h in heads
        ])  # fmt: skip
    occurrences, difference = (summary.occurrences, summary.difference) if summary else ([], None)
    rows = [] if summary is None or summary.windows else [occurrence.text for occurrence in occurrences]
    words = [occurrence.tokens[0] for occurrence in occurrences] if set(rows) == {*range(len(texts))} else []
    if not words and len(texts) == 2 and len(shapes) == 1:  # as is and changed
        words, rows = [int(str(page.opening["token"] or 0))] * 2, [0, 1]
    if not words or None in links:
        words, rows = [], []
    return {
        "kind": "texts", "chosen": chosen, "links": links, "tokens": words, "rows": rows,
        "difference": None if difference is None else {
            "words": list(difference.words),
            **{name: [None if value is None else round(value, 6) for value in getattr(difference, name)]
               for name in ("mean", "low", "high")},
        },
    }  # fmt: skip


def self_attention(page: Page, number: int) -> tuple[dict[Any, int], list[int]]:
    """Return a text's calls by layer, and its heads; none if the layers aren't alike."""
    calls: list[tuple[int, Any]] = [(at, call) for at, call in enumerate(page.calls) if call["queries"] == number]
    by_layer, heads = {call["layer"]: at for at, call in calls}, {call["heads"] for _, call in calls}
    if len(heads) != 1 or len(by_layer) < len(calls) or any(call["keys"] != number for _, call in calls):
        return {}, []
    return by_layer, calls[0][1]["head_numbers"] or [*range(*heads)]


def writing_stage(page: Page, written: Sequence[Any], traces: Sequence[Trace]) -> Data | None:
    """Write what a model wrote, token by token; None if the page lacks attention that the stage draws.

    page: with its texts and calls. written: of each text its `tokens` and `how`, as a `Generation` has them. Each token
    has its probability, others that were likely and its most distinctive links. Of each state it has its rank and
    probability there, and the likeliest tokens, by their numbers in `words`: three, or one if there are many.
    """
    names: dict[str, int] = {}
    count = 3 if sum(len(step.layers) for text in written for step in text.how.tokens) <= MOST_CELLS else 1

    def cell(layer: Any) -> list[int | float]:
        parts = [layer.rank, hundredths(layer.probability)]
        for guess in layer.candidates[:count]:
            parts += names.setdefault(guess.text, len(names)), hundredths(guess.probability)
        return parts

    texts = []
    for number, (text, trace) in enumerate(zip(written, traces, strict=True)):
        calls, heads = self_attention(page, number)
        if not (text.how.tokens and calls):
            return None
        if len(calls) * len(heads) * len(trace.tokens) ** 2 > MAX_WEIGHTS:
            page.status.append(f"Links that stand out are not sought in {page.texts[number]['name']}: it is too long.")
        steps = [
            {
                "probability": step.probability,
                "links": [
                    [link.key, calls[link.layer], heads.index(link.head), round(link.weight, 4)]
                    for link in step.links if link.layer in calls and link.head in heads
                ],
                "others": [(other.text, other.probability) for other in step.others],
                "lens": [cell(layer) for layer in step.layers],
            }
            for step in text.how.tokens
        ]  # fmt: skip
        texts.append({"text": number, "first": text.how.given, "steps": steps})
    return {"kind": "writing", "texts": texts, "words": list(names)}


def hundredths(chance: float) -> float:
    """Shorten a probability to two decimals, so that what isn't 0 or 1 still doesn't read so."""
    shown = round(chance, 2)
    return (shown or 0.001 * (chance > 0)) if shown < 1 or chance >= 1 - ROUNDING else 0.999
