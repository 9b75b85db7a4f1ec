"""Compare a trace's numbers with the model's own eager code, on this machine.

A difference may be as large as `WEIGHTS`, `VECTORS` or `STATISTICS`, or `TIMES` as large as the rounding error of the
model's own code, measured against the same code in float64.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from regard.attention.attention_map import AttentionMap
from regard.attention.cell_means import CELL, cell_means
from regard.attention.head_map import one_head
from regard.attention.map_statistics import Statistics
from regard.capture.interventions.names import ablate, head
from regard.display.asked import Progress
from regard.errors import InexactError, RegardError, first_line
from regard.explain.causes.contributions import contributions
from regard.memory import available
from regard.models.load import load
from regard.models.model import Model
from regard.nn.transformer import Transformer
from regard.questions.check.answer import Check, Result
from regard.questions.check.references import Apart, Outputs, Reading, Reference, region_apart
from regard.text.tokens import check_texts
from regard.trace.attention_output import AttentionOutput
from regard.trace.layer_subset import call_numbers

WEIGHTS, VECTORS, STATISTICS = 1e-5, 1e-4, 1e-5  # vectors and statistics relative to their largest number
TIMES, MOST = 10.0, 1e-3  # times the own rounding error; at most
UNITS, MOST_UNITS = 4, 16  # units near 1 of the model's precision that are always allowed; at most (half precision)
LENGTH = 1100  # tokens of the long text: CPU kernels for long texts are in use from 512, 725 or 1,024 tokens on
TOP, PICTURE = 5, (7, 11)  # largest weights per query; rows and columns of the pooled matrix
NEW_TOKENS = 8
SENTENCE = "The river was high, so the man sat down on the bank and waited."
TEXTS = (SENTENCE, "bank", "Die Bank am Fluß – 銀行, берег, ضفة, 2½ km, naïve 🏦!")
PARAGRAPH = f"{SENTENCE} In town they said that it would close at noon. A boy counted the boats twice, then the money. "
LENGTHS = (11, 5, LENGTH)  # of random ids

Measure = Callable[[Outputs, Outputs], Apart | None]


def check(
    model: Any,
    texts: str | Sequence[str] | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Check:
    """Compare weights, states, logits and what regard computes from them with the model's own eager code.

    A check that fails is reported in the answer, not raised. The model itself isn't changed.

    Args:
        model: a `regard.load` model, or anything that `regard.load` opens.
        texts: one or several texts to check on. Default: short ones and a long one, or random ids without a tokenizer.
        inputs: one item of other inputs instead, as `Model.trace` takes them.
        seed: of random ids and pixels.
        progress: called with the number of checks that are done, and of all.

    Raises:
        RegardError: the model can't be opened, can't read these inputs, or is a `regard.Transformer`, for which there
            is no other code.
    """
    model = model if isinstance(model, Model) else load(model)
    if isinstance(model.model, Transformer):
        raise RegardError(f"check: {model.name} is a regard.Transformer: there is no other code to compare it with")
    reference = Reference(model.model)
    readings = [Reading(model, reference, each) for each in _inputs(model, texts, inputs, seed)]
    first, longest = readings[0], max(readings, key=lambda each: each.size)
    checks: dict[str, Iterator[Result]] = {
        "attention weights": _compared(readings, Outputs.weights_apart),
        "hidden states": _compared(readings, Outputs.states_apart),
        "last states and logits": _compared(readings, Outputs.result_apart),
        "a padded batch": _padded_batch(model, readings[:3]),
        "statistics": _statistics(longest),
        "regions": _regions(longest),
        "contributions": _contributions(first),
        "an ablated head": _ablated_head(first),
        "generation with a cache": _generation(first),
    }
    results = []
    for number, (name, findings) in enumerate(checks.items()):
        if progress is not None:
            progress(number, len(checks))
        results.append(_result(name, findings))
    length = f", on up to {longest.size} tokens" if longest.size else ""
    where = f"torch {torch.__version__} on {model.model.device}, {torch.get_num_threads()} thread(s){length}"
    return Check(model.name, where, results)


def _inputs(model: Model, texts: Any, inputs: Any, seed: int) -> list[dict[str, Any]]:
    """Choose what the model is checked on, as `Model.trace` takes it."""
    given = [] if texts is None else list(check_texts(texts, "check: texts"))
    if texts is not None and (inputs is not None or not given):
        raise RegardError("check: needs at least one text, or inputs, or neither of them")
    if inputs is not None:
        return [{"inputs": inputs}]
    name, rows = model.model.main_input_name, list[list[int]]()
    if texts is None and name != "input_ids":
        raise RegardError(f"check: {model.name} reads {name!r}: call regard.check(model, inputs={{{name!r}: ...}})")
    if texts is None and model.tokenizer is not None:
        _, (encoded,) = model._reader.read("text", PARAGRAPH * LENGTH, None, windowed=True)
        given, rows = list(TEXTS), [list(encoded.ids[: _length(model)])]
    elif texts is None:
        count, drawn = model._reader._id_count(), torch.Generator().manual_seed(seed)
        lengths = (min(length, _length(model)) for length in LENGTHS)
        rows = [torch.randint(3, count, (length,), generator=drawn).tolist() for length in lengths]
    named = [{"text": text, "target": text} for text in given] + [{"ids": row, "target_ids": row} for row in rows]
    return named if model.pairs else [{name: each[name] for name in each if "target" not in name} for each in named]


def _length(model: Model) -> int:
    """Return the tokens of the long text: `LENGTH`, or as many as the model and the free memory allow."""
    config, free = model.model.config.get_text_config(), available(model.model.device)
    layers, heads = (getattr(config, f"num_{each}", None) or 24 for each in ("hidden_layers", "attention_heads"))
    fits = LENGTH if free is None else math.isqrt(free // (24 * layers * heads * (3 if model.pairs else 1)))
    return min(LENGTH, model.limit or LENGTH, max(64, fits))


def _result(name: str, findings: Iterator[Result]) -> Result:
    """Take the finding farthest above what is allowed. A check that regard can't make is not measured."""
    try:
        worst = max(findings, key=lambda each: (each.difference or 0.0) / (each.allowed or 1.0), default=None)
    except Exception as error:  # an answer that breaks is not exact
        if isinstance(error, RegardError) and not isinstance(error, InexactError):
            return Result(name, where=first_line(error))
        return Result(name, math.inf, 0.0, f"{type(error).__name__}: {first_line(error)}")
    return replace(worst, check=name) if worst else Result(name, where="its own code returns nothing to compare with")


def _allowed(reading: Reading, least: float, rounding: float | None) -> float:
    """Return how large a difference may be. rounding: of the own code, None if that isn't known."""
    unit = torch.finfo(reading.model.model.dtype).eps
    least, most = max(least, UNITS * unit), max(MOST, MOST_UNITS * unit)
    return max(least, min(most, TIMES * (least if rounding is None else rounding)))


def _compared(readings: Sequence[Reading], measure: Measure) -> Iterator[Result]:
    """Compare traces with the own code's passes, and results also with a plain pass."""
    for each in readings:
        for own in (each.own, each.plain):
            yield from _apart(each, measure, Outputs.of_trace(each.trace), own)


def _apart(reading: Reading, measure: Measure, ours: Outputs, own: Outputs) -> Iterator[Result]:
    apart = measure(ours, own)
    if apart is not None:
        least = WEIGHTS if measure is Outputs.weights_apart else VECTORS
        allowed = _allowed(reading, least, reading.rounding(measure))
        yield Result("", apart.difference, allowed, f"{reading.size} tokens: {apart.where}")


def _padded_batch(model: Model, readings: Sequence[Reading]) -> Iterator[Result]:
    """Compare texts traced in one batch with the own code's pass over each alone."""
    if len({each.size for each in readings}) < 2:
        raise RegardError("needs texts of different lengths")
    asked: dict[str, Any] = {name: [each.asked[name] for each in readings] for name in readings[0].asked}
    for trace, each in zip(model.trace(**asked), readings, strict=True):
        for measure in (Outputs.weights_apart, Outputs.result_apart):
            yield from _apart(each, measure, Outputs.of_trace(trace), each.own)


def _statistics(reading: Reading) -> Iterator[Result]:
    """Compare statistics, asked of a map and computed with the pass, with those of the own code's weights."""
    kept = reading.model.trace(**reading.asked, statistics=Statistics(TOP, PICTURE))
    exact = {} if reading.exact is None else {at: each for at, _, each in reading.own.weight_pairs(reading.exact)}
    for how, trace in (("", reading.trace), (", computed with the pass", kept)):
        for layer, weights, own in Outputs.of_trace(trace).weight_pairs(reading.own):
            expected = _statistics_of_weights(own, weights)
            precise = _statistics_of_weights(exact[layer], weights) if exact else {}
            for name, found in _statistics_of_map(weights, own).items():
                rounding = _relative(expected[name], precise[name]) if precise else None
                allowed = _allowed(reading, STATISTICS, rounding)
                yield Result("", _relative(found, expected[name]), allowed, f"{name}, {layer}{how}")


def _statistics_of_map(weights: AttentionMap, own: Float[Tensor, "H L S"]) -> dict[str, Tensor]:
    values, keys = weights.top(TOP)
    own_values = own.gather(-1, keys.clamp(min=0)).masked_fill(keys < 0, 0.0)
    found = {"largest weights": values, "keys of the largest weights": own_values, "entropy": weights.entropy()}
    found |= {"received": weights.received(), "pooled matrix": weights.pooled(*PICTURE)}
    return found if weights.offset is None else found | {"distance": weights.distance()}


def _statistics_of_weights(weights: Float[Tensor, "H L S"], ours: AttentionMap) -> dict[str, Tensor]:
    """Compute the same in float64. A sink takes what a row of weights lacks to 1."""
    weights = weights.cpu().double()
    on_keys, top = weights.sum(-1), weights.topk(min(TOP, weights.shape[-1])).values
    sinks = (1 - on_keys).clamp(min=0) if ours.rule.sinks is not None else torch.zeros_like(on_keys)
    found = {"largest weights": top, "keys of the largest weights": top, "received": weights.sum(1)}
    found["entropy"] = torch.special.entr(weights).sum(-1) + torch.special.entr(sinks)
    found["pooled matrix"] = _means(_means(weights, 1, PICTURE[0]), 2, PICTURE[1])
    if ours.offset is not None:
        queries, keys = (torch.arange(size) for size in weights.shape[1:])
        found["distance"] = (weights * (queries[:, None] + ours.offset - keys).abs()).sum(-1) / on_keys
    return found


def _means(weights: Float[Tensor, "H L S"], axis: int, parts: int) -> Float[Tensor, "H P Q"]:
    size = weights.shape[axis]
    bands = weights.tensor_split([n * size // min(parts, size) for n in range(1, min(parts, size))], axis)
    return torch.stack([each.mean(axis) for each in bands], axis)


def _relative(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference relative to the largest number. Queries without keys have no distance (NaN)."""
    apart = torch.where(expected.isnan(), 0.0, found.cpu() - expected).abs().nan_to_num(math.inf)
    return float(apart.max()) / max(1e-30, float(expected.nan_to_num(0.0).abs().max()))


def _regions(reading: Reading) -> Iterator[Result]:
    """Compare a part of each matrix, and the cell means that a page of a long text shows, with the own weights."""
    allowed = _allowed(reading, WEIGHTS, reading.rounding(Outputs.weights_apart))
    for layer, weights, own in Outputs.of_trace(reading.trace).weight_pairs(reading.own):
        rows, cols = (slice(size // 3, size // 3 + 64) for size in own.shape[1:])
        apart = region_apart(f"part of {layer}", weights[:, rows, cols], own[:, rows, cols])
        yield Result("", apart.difference, allowed, apart.where)
        means = torch.cat([each for _, each in cell_means(one_head(weights, 0))])
        expected = F.avg_pool2d(own[:1].cpu().double(), CELL, ceil_mode=True)[0]
        yield Result("", _relative(means, expected), allowed, f"cell means, {layer}, head 0")


def _contributions(reading: Reading) -> Iterator[Result]:
    """Compare each token's contribution through each head with own weight × value × output projection, in float64."""
    if reading.model.model.dtype.itemsize < torch.float32.itemsize:
        raise RegardError("in half precision, contributions add up no better than the model's own sums")
    allowed = _allowed(reading, VECTORS, reading.rounding(Outputs.weights_apart))
    for side, own in reading.own.weights.items():
        trace = reading.trace.sides[-1 if side in ("decoder_", "cross_") else 0]
        maps, values, blocks = trace.attention, trace.values, trace.attention_outputs
        if side == "cross_":
            maps, values, blocks = trace.cross, trace.cross_values, trace.cross_attention_outputs
        calls = call_numbers(maps)[:: max(1, len(maps) // len(own))]
        for (layer, _), weights in zip(calls, own, strict=False):
            for token in sorted({len(trace.tokens) // 2, len(trace.tokens) - 1}):
                found = contributions(trace, token, layer, part="cross" if side == "cross_" else None)
                parts = _parts(weights[:, token], values[layer], blocks[layer], token)
                for name, ours, expected in (
                    ("lengths", found.norms, parts.norm(dim=-1)),
                    ("fractions", found.shares, parts @ found.vector.cpu() / float(found.vector.norm()) ** 2),
                    ("sums of heads", found.sources(), parts.sum(0)),
                    ("sums of tokens", found.heads(), parts.sum(1)),
                ):
                    where = f"{name}, {side.replace('_', ' ')}layer {layer}, token {token}"
                    yield Result("", _relative(ours, expected), allowed, where)


def _parts(weights: Float[Tensor, "H S"], values: Any, block: Any, token: int) -> Float[Tensor, "H S M"]:
    """Multiply weight, value and output projection, and by what follows, a norm with its statistics held fixed."""
    heads = len(weights)
    projection = block.weight.cpu().double().unflatten(1, (heads, -1)).permute(1, 2, 0)  # (H, E, M)
    vectors = values.cpu().double().repeat_interleave(heads // len(values), 0) @ projection
    parts = weights.cpu().double()[..., None] * vectors
    if block.scaling is not None:
        parts = parts * (block.scaling.scale[token] * block.scaling.gain).cpu().double()
    if block.norm is not None:
        deviation = (block.residual + block.added)[token].cpu().double().var(correction=0) + block.norm.eps
        parts = (parts - parts.mean(-1, keepdim=True)) / deviation.sqrt()
        parts = parts if block.norm.weight is None else parts * block.norm.weight.cpu().double()
    return parts


def _ablated_head(reading: Reading) -> Iterator[Result]:
    """Compare the result without a head with the own code's, run with that head's output projection set to 0."""
    trace = reading.trace.sides[-1]
    blocks = {layer: trace.attention_outputs[layer] for layer, _ in call_numbers(trace.attention)}
    layer = list(blocks)[len(blocks) // 2] if blocks else 0
    block = blocks[layer]
    if not isinstance(block, AttentionOutput):
        raise RegardError(block.reason)
    number = trace.attention[layer].shape[0] - 1
    width = block.weight.shape[1] // (number + 1)
    alike = [n for n, each in blocks.items() if isinstance(each, AttentionOutput) and each.weight is block.weight]
    ablation = [ablate(head(n, number, part="decoder" if reading.model.pairs else None)) for n in alike]
    ours = Outputs.of_trace(reading.model.trace(**reading.asked, interventions=ablation))
    own = reading.reference.without_head(reading.inputs, block.weight, slice(number * width, None))
    effect = own.result_apart(reading.own)
    for each in _apart(reading, Outputs.result_apart, ours, own):
        if effect is None or effect.difference <= (each.allowed or 0.0):
            raise RegardError(f"ablating head {number} of layer {layer} changes too little to compare")
        yield replace(each, where=f"without head {number} of layer {layer}")


def _generation(reading: Reading) -> Iterator[Result]:
    """Compare tokens with transformers' own `generate`, weights and logits with one pass over all tokens."""
    if "input_ids" not in reading.inputs:
        raise RegardError("it reads no text")
    model, ids = reading.model, reading.inputs["input_ids"]
    theirs = reading.reference.generate(ids, NEW_TOKENS)
    written = model.generate(ids=ids[0].tolist(), new_tokens=NEW_TOKENS, do_sample=False)
    sides = [[token.id for token in side.tokens] for side in written.trace.sides]
    whole = Reading(model, reading.reference, dict(zip(("ids", "target_ids"), sides, strict=False)))
    if any(bool(each.triu(1).any()) for each in whole.own.weights.get("decoder_" if model.pairs else "", ())):
        raise RegardError("its own code looks ahead in one pass")
    wrong = [n for n, (ours, own) in enumerate(zip_longest(written.ids, theirs)) if ours != own]
    yield Result("", math.inf if wrong else 0.0, VECTORS, f"token {wrong[0]} differs" if wrong else "")
    for measure in (Outputs.weights_apart, Outputs.result_apart):
        yield from _apart(whole, measure, Outputs.of_trace(written.trace), whole.own)
