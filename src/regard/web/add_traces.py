"""Add traces to a page: texts with tokens and sinks, attention calls, and head scores.

The Steps view also needs values, the projection W_O, the residual stream and the norm after it. The page has W_O if it
was verified, that is, if the heads' contributions add up to the model's own output. Otherwise it has only the values,
and the reason. If there are few tokens, W_O · value of every head and key replaces W_O, because it is smaller and leads
to the same numbers.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.given_map import key_heads_of_queries, of_heads
from regard.capture.interventions.names import STACKS, Part, check_intervention_part
from regard.errors import RegardError
from regard.explain.causes.contributions import adds_up, contribution_norms, projected_values
from regard.explain.weights.head_means import MEANINGS, OVER
from regard.explain.weights.head_scores import SCORED, HeadScores, head_scores
from regard.explain.weights.sinks import cross_sinks, sinks_of
from regard.explain.wording import count_of_tokens
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.layers import CallNumber, Layers, kept_numbers
from regard.trace.trace import PairTrace, Trace
from regard.web.call import CallName, call_data
from regard.web.numbers import Data, NumberStore, page_numbers_in_bits, vector_bytes_in_page
from regard.web.page import Page, text_data

T = TypeVar("T")
VALUES_ALONE = 36_000  # maximum bytes of a layer's values without steps= (48 kB of a file)


def steps_data(
    call: int,
    weights: AttentionMap,
    values: Float[Tensor, "G S E"],
    output: AttentionOutput | UnverifiedOutput | None,
    entering: Float[Tensor, "L M"] | None,
    numbers: NumberStore,
    tokens: int = 0,
) -> Data:
    """Return the page's data for the steps of one call: values, projection, residual and norm of all heads."""
    refused = refusal(weights, values, output)
    data: Data = {
        "call": call, "value": numbers.add_vectors(values)[0], "projection": None, "projected": None,
        "projection_bias": None, "projection_scale": 1.0, "residual": None, "kind": None, "norm": None,
        "entering": None if entering is None else numbers.add_vectors(entering)[0], "refused": refused,
    }  # fmt: skip
    if refused is not None or not isinstance(output, AttentionOutput):
        return data
    norm = output.norm if output.kind == "post-norm" else None
    heads = output.weight.shape[1] // values.shape[-1]
    projected_bytes = vector_bytes_in_page((heads, max(tokens, values.shape[1]), len(output.weight)))
    projects = projected_bytes < 4 * output.weight.numel()  # W_O · value is smaller than W_O in float32
    data |= {
        "projection": None if projects else numbers.add(output.weight.float()),
        "projected": numbers.add_vectors(projected_values(values, output))[0] if projects else None,
        "projection_bias": _add_vector(output.bias, numbers),
        "projection_scale": 1.0 if output.scaling is None else float(output.scaling.scale.flatten()[0]),
        "residual": numbers.add_vectors(output.residual)[0],
        "kind": output.kind,
        "norm": norm and {
            "kind": "layer norm", "weight": _add_vector(norm.weight, numbers), "bias": _add_vector(norm.bias, numbers),
            "epsilon": norm.eps,
        },
    }  # fmt: skip
    return data


def refusal(
    weights: AttentionMap, values: Float[Tensor, "G S E"], output: AttentionOutput | UnverifiedOutput | None
) -> str | None:
    """Return the reason if a page can't have a call's output projection, otherwise None."""
    if output is None:
        return "the trace does not hold what stands around attention: trace with attention_outputs=True"
    if isinstance(output, UnverifiedOutput):
        return output.reason
    scaling = output.scaling
    if scaling is not None and not (
        scaling.scale.numel() and bool((scaling.scale == scaling.scale.flatten()[0]).all() & (scaling.gain == 1).all())
    ):
        return "the model rescales the projected vector, by a different factor for each token"
    if not adds_up(weights, values, output):
        return "the heads' parts do not add up to what the model computed"
    return None


def entry_of_call(kept: Layers[T], call: CallNumber) -> T | None:
    """Return a call's entry in a sequence of a trace, such as its values, or None if the trace lacks it."""
    return kept[call] if call in kept.calls else None


def _add_vector(vector: Float[Tensor, " M"] | None, numbers: NumberStore) -> Data | None:
    return None if vector is None else numbers.add(vector.float())


@dataclass
class Added:
    """Where a trace's text and calls are on a page. calls, cross: indices by (layer, number of the call in it)."""

    text: int
    calls: dict[CallNumber, int] = field(default_factory=dict)
    cross: dict[CallNumber, int] = field(default_factory=dict)


def add_trace(
    page: Page, trace: Trace, name: str, *, also_sinks: Sequence[int] = (), part: Part | None = None
) -> Added:
    """Add a trace to a page: text, self-attention calls, steps and head scores. also_sinks: additional sink tokens."""
    check_intervention_part(part, STACKS)
    chosen = chosen_calls(page, trace.attention)
    scores = None
    if trace.tokens and len(trace.tokens) <= SCORED and trace.attention.calls:
        with suppress(RegardError):  # some keys aren't tokens of the text
            scores = head_scores(trace)
    if scores is None:
        sinks = {sink.token for sink in sinks_of([trace.attention[call] for call in chosen], trace.tokens)}
    else:
        sinks = set(scores.sink_tokens)
    added = Added(page.add_text(text_data(name, trace.text, trace.tokens, sinks | {*also_sinks}, trace.patches)))
    added.calls = _add_calls(page, trace, added.text, added.text, part)
    _add_steps(page, trace, added)
    if scores is not None:
        page.scores.append(_chosen_scores(page, scores, added))
    elif chosen and len(trace.tokens) > SCORED:
        page.status.append(f"The heads of {name} are not scored: it has more than {SCORED} tokens.")
    return added


def add_pair(page: Page, pair: PairTrace, source: str, target: str) -> tuple[Added, Added]:
    """Add an encoder-decoder's trace to a page: source, target, and the target's cross-attention to the source."""
    has_cross = bool(pair.decoder.cross.calls) and len(pair.encoder.tokens) > 0
    sinks = [sink.token for sink in cross_sinks(pair)] if has_cross else []
    encoder = add_trace(page, pair.encoder, source, also_sinks=sinks, part="encoder")
    decoder = add_trace(page, pair.decoder, target, part="decoder")
    decoder.cross = _add_calls(page, pair.decoder, decoder.text, encoder.text, "cross")
    return encoder, decoder


def chosen_calls(page: Page, maps: Layers[Any]) -> list[CallNumber]:
    """Return a trace's attention calls in the layers that the page includes."""
    if page.layers is None:
        return list(maps.calls)
    for layer in page.layers:
        maps[layer]  # raises an error if the trace doesn't have this layer
    return [call for call in maps.calls if call[0] in page.layers]


def _add_calls(page: Page, trace: Trace, queries: int, keys: int, part: Part | None) -> dict[CallNumber, int]:
    """Add a stack's attention calls to a page, and return their indices. queries, keys: indices of the page's texts."""
    maps, values, outputs = (
        (trace.cross, trace.cross_values, trace.cross_attention_outputs)
        if part == "cross"
        else (trace.attention, trace.values, trace.attention_outputs)
    )
    calls, numbers = maps.calls, {}
    for call in chosen_calls(page, maps):
        layer, nth = call
        alone = sum(other == layer for other, _ in calls) == 1
        weights = maps[call]
        value, output = entry_of_call(values, call), entry_of_call(outputs, call)
        selected = of_heads(weights, page.heads, layer)
        name = CallName(layer, nth, queries, keys, alone, part)
        norms = None
        if value is not None and isinstance(output, AttentionOutput):
            norms = contribution_norms(weights, value, output)
        if norms is not None:  # 10 bits (relative error 1e-3), as norms would be most of a short text's page
            norms = page_numbers_in_bits(norms if page.heads is None else norms[list(page.heads)], 10)
        included = None if selected.shape[0] == weights.shape[0] else page.heads
        numbers[call] = page.add_call(call_data(selected, name, page.numbers, norms=norms, head_numbers=included))
    return numbers


def _add_steps(page: Page, trace: Trace, added: Added) -> None:
    """Add the steps of a trace's calls to a page, for the layers in `page.steps_of`."""
    before = page.numbers.size
    for call, number in added.calls.items():
        if page.steps_of is not None and call[0] not in page.steps_of:
            continue
        values = entry_of_call(trace.values, call)
        size = 0 if values is None else vector_bytes_in_page((page.tokens, *values.shape[::2]))
        if page.values_alone and (values is None or size > VALUES_ALONE):
            continue
        if values is None:
            page.status.append(f"The steps of layer {call[0]} are not here: the trace does not hold its values.")
            continue
        output, weights = entry_of_call(trace.attention_outputs, call), trace.attention[call]
        entering = trace.hidden_states[call[0]] if call[0] in kept_numbers(trace.hidden_states) else None
        if page.values_alone:
            output, entering = UnverifiedOutput("this page was saved without --html-with steps (steps=True)"), None
        if page.heads is not None:
            values = values[key_heads_of_queries(page.heads, weights.shape[0], len(values))]
            output = UnverifiedOutput("W_O joins all heads, and the page has some of them alone")
        page.steps.append(steps_data(number, weights, values, output, entering, page.numbers, page.tokens))
    page.steps_size += page.numbers.size - before


def _chosen_scores(page: Page, scores: HeadScores, added: Added) -> Data:
    """Return the page's data for the head scores of the calls and heads that it includes."""
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
