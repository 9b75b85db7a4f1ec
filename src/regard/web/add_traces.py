"""Add traces to a page: the texts with their tokens and sinks, every attention call, the scores of their heads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from regard.attention.head_map import key_heads_of_queries, of_heads
from regard.capture.interventions.names import STACKS, Part, check_intervention_part
from regard.errors import RegardError
from regard.explain.causes.contributions import contribution_norms
from regard.explain.weights.head_means import MEANINGS, OVER
from regard.explain.weights.head_scores import SCORED, HeadScores, head_scores
from regard.explain.weights.sinks import cross_sinks, sinks_of
from regard.explain.wording import count_of_tokens
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.layer_subset import CallNumber, call_numbers
from regard.trace.trace import PairTrace, Trace
from regard.web.call import CallName, call_data
from regard.web.numbers import page_numbers_in_bits, vector_bytes_in_page
from regard.web.page import Page, text_data
from regard.web.score_rules import Data
from regard.web.steps import entering_of, output_of, steps_data, value_of

VALUES_ALONE = 36_000  # bytes, 48 kB of a file, that all texts' values of a layer may take unasked


@dataclass
class Added:
    """Where a trace stands in a page: its text's number, and those of its calls by (layer, which of its calls)."""

    text: int
    calls: dict[CallNumber, int] = field(default_factory=dict)
    cross: dict[CallNumber, int] = field(default_factory=dict)


def add_trace(
    page: Page, trace: Trace, name: str, *, also_sinks: Sequence[int] = (), part: Part | None = None
) -> Added:
    """Add a text and its self-attention."""
    check_intervention_part(part, STACKS)
    chosen = chosen_calls(page, trace.attention)
    scores = _head_scores_for_page(trace)
    if scores is None:
        found = {sink.token for sink in sinks_of([trace.attention[call] for call in chosen], trace.tokens)}
    else:
        found = set(scores.sink_tokens)
    added = Added(page.add_text(text_data(name, trace.text, trace.tokens, found | {*also_sinks}, trace.patches)))
    added.calls = _add_calls(page, trace, added.text, added.text, part)
    _add_steps(page, trace, added)
    if scores is not None:
        page.scores.append(_chosen_scores(page, scores, added))
    elif chosen and len(trace.tokens) > SCORED:
        page.status.append(f"The heads of {name} are not scored: it has more than {SCORED} tokens.")
    return added


def add_pair(page: Page, pair: PairTrace, source: str, target: str) -> tuple[Added, Added]:
    """Add a text and its target, and the target's attention to the text."""
    both = bool(call_numbers(pair.decoder.cross)) and len(pair.encoder.tokens) > 0
    apart = [sink.token for sink in cross_sinks(pair)] if both else []
    encoder = add_trace(page, pair.encoder, source, also_sinks=apart, part="encoder")
    decoder = add_trace(page, pair.decoder, target, part="decoder")
    decoder.cross = _add_calls(page, pair.decoder, decoder.text, encoder.text, "cross")
    return encoder, decoder


def chosen_calls(page: Page, maps: Sequence[object]) -> list[CallNumber]:
    """The calls of a trace's maps that a page is to have."""
    if page.layers is None:
        return list(call_numbers(maps))
    for layer in page.layers:
        maps[layer]  # says so itself where the trace does not hold it
    return [call for call in call_numbers(maps) if call[0] in page.layers]


def _add_calls(page: Page, trace: Trace, queries: int, keys: int, part: Part | None) -> dict[CallNumber, int]:
    maps, values, outputs = (
        (trace.cross, trace.cross_values, trace.cross_attention_outputs)
        if part == "cross"
        else (trace.attention, trace.values, trace.attention_outputs)
    )
    made, numbers = call_numbers(maps), {}
    for call in chosen_calls(page, maps):
        layer, nth = call
        alone = sum(other == layer for other, _ in made) == 1
        weights = maps[call]
        value, output = value_of(values, call), output_of(outputs, call)
        few = of_heads(weights, page.heads, layer)
        name = CallName(layer, nth, queries, keys, alone, part)
        norms = None
        if value is not None and isinstance(output, AttentionOutput):
            norms = contribution_norms(weights, value, output)
        if norms is not None:  # 10 bits, 1e-3 of each: more would be most of a short text's page
            norms = page_numbers_in_bits(norms if page.heads is None else norms[list(page.heads)], 10)
        own = None if few.shape[0] == weights.shape[0] else page.heads
        numbers[call] = page.add_call(call_data(few, name, page.numbers, norms=norms, head_numbers=own))
    return numbers


def _add_steps(page: Page, trace: Trace, added: Added) -> None:
    """Add what Steps need, of the calls that are to have it."""
    for call, number in added.calls.items():
        if page.steps_of is not None and call[0] not in page.steps_of:
            continue
        values = value_of(trace.values, call)
        if page.values_alone and (
            values is None or vector_bytes_in_page((page.tokens, *values.shape[::2]), page.encoding) > VALUES_ALONE
        ):
            continue
        if values is None:
            page.status.append(f"The steps of layer {call[0]} are not here: the trace does not hold its values.")
            continue
        output, weights = output_of(trace.attention_outputs, call), trace.attention[call]
        entering = entering_of(trace, call[0])
        if page.values_alone:
            output, entering = UnverifiedOutput("this page was saved without --html-with steps (steps=True)"), None
        if page.heads is not None:
            values = values[key_heads_of_queries(page.heads, weights.shape[0], len(values))]
            output = UnverifiedOutput("W_O joins all heads, and the page has some of them alone")
        page.steps.append(steps_data(number, weights, values, output, entering, page.numbers, page.tokens))


def _head_scores_for_page(trace: Trace) -> HeadScores | None:
    """The scores of a text's heads; None where it is long, or has no attention among its own tokens alone."""
    if not trace.tokens or len(trace.tokens) > SCORED or not call_numbers(trace.attention):
        return None
    try:
        return head_scores(trace)
    except RegardError:  # keys that are no tokens of the text
        return None


def _chosen_scores(page: Page, scores: HeadScores, added: Added) -> Data:
    """Write the scores of the calls and heads that the page has."""
    tables = scores.by_name()
    counts = {name: count_of_tokens(getattr(scores, OVER.get(name, "queries"))) for name in tables}
    kept = [row for row, call in enumerate(scores.calls) if call in added.calls]
    shown = [(table if page.heads is None else table[:, list(page.heads)])[kept].tolist() for table in tables.values()]
    return {
        "text": added.text,
        "names": list(tables),
        "meanings": [f"{MEANINGS[name].says.removesuffix('.')} (here the mean of {counts[name]})." for name in tables],
        "calls": [added.calls[scores.calls[row]] for row in kept],
        "values": [[[None if math.isnan(score) else round(score, 6) for score in row] for row in table]
                   for table in shown],
    }  # fmt: skip
