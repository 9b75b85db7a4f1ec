"""Compare a trace's numbers with the model's own eager code, on this machine.

transformers' eager attention computes and returns all weights. It runs on a copy of the model's modules that shares
their tensors, so the model itself doesn't change. The copy uses none of regard's attention code, hooks or kernels.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, product, zip_longest
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import reference
from regard.attention.map_statistics import Statistics
from regard.capture.interventions.names import ablate, head
from regard.display.answer import Answer
from regard.display.panels import Column, Panel, Table
from regard.display.query import Progress
from regard.display.sentences import Template, sentences
from regard.errors import InexactError, RegardError, first_line
from regard.explain.causes.contributions import contributions
from regard.memory import available
from regard.models.load import load
from regard.models.model import Model
from regard.nn.transformer import Transformer
from regard.shown import Row
from regard.text.tokens import check_texts
from regard.trace.attention_output import AttentionOutput
from regard.verify.references import RESULT, STATES, WEIGHTS, CheckedInput, largest_difference, layers

PASSED, FAILED, NOT_TESTED = "passed", "FAILED", "not tested"
TABLE: list[list[Template]] = [
    [("All {tested} checks passed.", lambda n: n["passed"] == n["tested"] > 1),
     ("{passed} of {tested} checks passed.", None)],
    [("Failed: {failed}.", None)],
    [("Not tested: {left}.", None)],
]  # fmt: skip


@dataclass(frozen=True)
class Result:
    """The largest difference in a check, its tolerance (`allowed`), and its text, layer, head and tokens (`where`).

    If the check was not tested, `difference` and `allowed` are None, and `where` is the reason.
    """

    check: str
    difference: float | None = None
    allowed: float | None = None
    where: str = ""

    @property
    def verdict(self) -> str:
        """Whether the check passed, failed or was not run."""
        if self.difference is None or self.allowed is None:
            return NOT_TESTED
        return PASSED if self.difference <= self.allowed else FAILED


@dataclass(frozen=True, eq=False, repr=False)
class Check(Answer):
    """The results of all checks of a model. name: the model's name. where: the library, device and threads."""

    format: ClassVar[str] = "regard check"

    name: str
    where: str
    results: Sequence[Result] = field(repr=False)

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return not self.of(FAILED)

    def of(self, verdict: str) -> list[Result]:
        """Return the check results with this verdict."""
        return [result for result in self.results if result.verdict == verdict]

    def title(self) -> str:
        """Return a title with the checked model's name."""
        return f"{self.name} compared with its own code"

    def findings(self) -> list[str]:
        """Report the number of checks that passed, and the names of the others."""
        passed, failed, untested = ([x.check for x in self.of(verdict)] for verdict in (PASSED, FAILED, NOT_TESTED))
        numbers = {"passed": len(passed), "tested": len(passed + failed)}
        return sentences(TABLE, numbers | {"failed": failed or None, "left": untested or None})

    def exactness(self) -> list[str]:
        """Return a sentence with the library, device and threads of the checks."""
        return [f"Checked with {self.where}."]

    def rows(self) -> list[Row]:
        """Return a row per check."""
        return [asdict(result) | {"verdict": result.verdict} for result in self.results]

    def data(self) -> dict[str, object]:
        """Return whether no check failed, and the rows of all checks, for JSON."""
        return {"model": self.name, "holds": self.holds, "computed_with": self.where, "rows": self.rows()}

    def panels(self) -> list[Panel]:
        """Return a table of all checks, with the position of a failure, or the reason why a check was not tested."""
        columns = [Column(name) for name in ("check", "difference", "allowed", "verdict", "place or reason")]
        rows = []
        for result in self.results:
            numbers = ("" if x is None else f"{x:.1e}" for x in (result.difference, result.allowed))
            rows.append([result.check, *numbers, result.verdict, result.where * (result.verdict != PASSED)])
        return [Table(name="Checks", title=self.title(), columns=columns, rows=rows, screen=True)]


# Tolerance of weights and statistics, tolerance of vectors, multiple of the model's rounding error, and maximum.
TOLERANCE, VECTOR_TOLERANCE, ROUNDINGS, MAX_TOLERANCE = 1e-5, 1e-4, 10.0, 1e-3
LENGTH = 1100  # tokens in the long text; CPU kernels for long texts are used from 512, 725 or 1,024 tokens on
TOP, POOLED, NEW_TOKENS = 5, (7, 11), 8  # largest weights per query, shape of the pooled matrix, generated tokens
TEXTS = ("The river was high, so he sat down on the bank.", "bank", "Die Bank – 銀行, берег, ضفة, 2½ km, naïve 🏦!")


def check(
    model: Any,
    texts: str | Sequence[str] | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Check:
    """Compare weights, states, logits and regard's statistics with those of the model's own eager code.

    A failed check is part of the result and raises no error. The model's weights don't change. A bare BERT that runs on
    regard's own implementation is opened with transformers for the check, and runs on transformers from then on.

    Args:
        model: a `regard.load` model, or anything that `regard.load` opens.
        texts: texts to check. Default: short texts and a long text, or random ids if the model has no tokenizer.
        inputs: a single item of other inputs to check instead of texts, as for `Model.trace`.
        seed: seed of random ids.
        progress: called with the number of finished checks and the total.

    Raises:
        RegardError: the model or the inputs can't be used, or the model is a `regard.Transformer`.
    """
    model = model if isinstance(model, Model) else load(model)
    if isinstance(model.model, Transformer):
        raise RegardError(f"check: {model.name} is a regard.Transformer: there is no other code to compare it with")
    readings = [CheckedInput(model, item) for item in _inputs(model, texts, inputs, seed)]
    first, longest = readings[0], max(readings, key=lambda reading: reading.size)
    checks: dict[str, Iterator[Result]] = {
        "attention weights": _compare(WEIGHTS, readings),
        "hidden states": _compare(STATES, readings),
        "logits and last states": _compare(RESULT, readings),
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
        results.append(_worst_result(name, findings))
    threads = torch.get_num_threads()
    environment = f"torch {torch.__version__} on {model.model.device} with {threads} thread{'s' * (threads > 1)}"
    return Check(model.name, f"{environment}, on texts of up to {longest.size} tokens", results)


def _inputs(model: Model, texts: Any, inputs: Any, seed: int) -> list[dict[str, Any]]:
    """Choose the inputs to check, as arguments of `Model.trace`. The long text is shorter if memory is limited."""
    texts = None if texts is None else list(check_texts(texts, "check: texts"))
    if texts is not None and (inputs is not None or not texts):
        raise RegardError("check: pass at least one text, or inputs, or neither")
    if inputs is not None:
        return [{"inputs": inputs}]
    if (name := model.model.main_input_name) != "input_ids":
        raise RegardError(f"check: {model.name} reads {name!r}: call regard.check(model, inputs={{{name!r}: ...}})")
    config, free = model.model.config.get_text_config(), available(model.model.device)
    depth, heads = (getattr(config, f"num_{name}", None) or 24 for name in ("hidden_layers", "attention_heads"))
    size = LENGTH if free is None else math.isqrt(free // (24 * depth * heads * (3 if model.pairs else 1)))
    length, rows = min(LENGTH, model.limit or LENGTH, max(64, size)), list[list[int]]()
    if texts is None and model.tokenizer is not None:
        _, (encoded,) = model._reader.read("text", " ".join(TEXTS) * 100, None, windowed=True)
        texts, rows = TEXTS, [list(encoded.ids[:length])]
    elif texts is None:
        count, generator = model._reader._count_ids(), torch.Generator().manual_seed(seed)
        rows = [torch.randint(3, count, (min(n, length),), generator=generator).tolist() for n in (11, 5, length)]
    items = [{"text": text, "target": text} for text in texts or ()]
    items += [{"ids": ids, "target_ids": ids} for ids in rows]
    return items if model.pairs else [{name: item[name] for name in ("text", "ids") if name in item} for item in items]


def _worst_result(name: str, findings: Iterator[Result]) -> Result:
    """Return the finding with the largest difference relative to its tolerance, or why a check is not tested."""
    results, reason = list[Result](), "its own code returns nothing to compare with"
    try:
        results.extend(findings)
    except Exception as error:  # findings before the error stay in `results`
        reason = first_line(error)
        if isinstance(error, RegardError) and not isinstance(error, InexactError):
            results = [result for result in results if result.verdict == FAILED]
        else:
            results.append(Result(name, math.inf, 0.0, f"{type(error).__name__}: {reason}"))
    if not results:
        return Result(name, where=reason)
    return replace(max(results, key=lambda result: (result.difference or 0.0) / (result.allowed or 1.0)), check=name)


def _allowed(reading: CheckedInput, lower: float, rounding: float | None) -> float:
    """Return the tolerance of a check. rounding: the rounding error of the model's own code, None if unknown."""
    unit = torch.finfo(reading.model.model.dtype).eps  # these bounds only matter in half precision
    lower, upper = max(lower, 4 * unit), max(MAX_TOLERANCE, 16 * unit)
    return max(lower, min(upper, ROUNDINGS * (lower if rounding is None else rounding)))


def _compare(fields: Any, readings: Sequence[CheckedInput], traces: Any = (), outputs: Any = ()) -> Iterator[Result]:
    """Compare traces with passes of the model's own code. traces, outputs: used instead of the readings'."""
    for item, trace, expected in zip_longest(readings, traces, outputs):
        if difference := largest_difference(trace or item.trace, expected or item.output, fields):
            allowed = _allowed(item, TOLERANCE if fields is WEIGHTS else VECTOR_TOLERANCE, _rounding(item, fields))
            yield Result("", difference[0], allowed, f"{difference[1]} of {item.size} tokens")


def _rounding(reading: CheckedInput, fields: tuple[str, ...]) -> float | None:
    """Return the largest difference between the model's own results and those in float64, None if unknown."""
    difference = None if reading.exact is None else largest_difference(reading.output, reading.exact, fields)
    return difference and difference[0]


def _padded_batch(model: Model, readings: Sequence[CheckedInput]) -> Iterator[Result]:
    """Compare texts traced in a padded batch with the model's own passes over single texts."""
    if len({reading.size for reading in readings}) < 2:
        raise RegardError("needs texts of different lengths")
    batch: dict[str, Any] = {name: [reading.options[name] for reading in readings] for name in readings[0].options}
    traces = model.trace(**batch)
    maps = [layer for n, trace in enumerate(traces) for layer in layers(trace, readings[n].output)]
    # keys that aren't tokens of the text, such as compressed keys, depend on the longest text of a batch
    tokens_alone = all(layer.part or layer.map.shape[2] == len(layer.trace.tokens) for layer in maps)
    fields = (WEIGHTS, RESULT) if tokens_alone else (RESULT,)
    yield from chain(*(_compare(names, readings, traces) for names in fields))


def _statistics(reading: CheckedInput) -> Iterator[Result]:
    """Compare statistics computed from maps, and during the pass, with those of the model's own weights."""
    recorded: Any = reading.model.trace(**reading.options, statistics=Statistics(TOP, POOLED))
    for suffix, trace in (("", reading.trace), (", computed with the pass", recorded)):
        precise = layers(trace, reading.exact)
        for layer in layers(trace, reading.output):
            expected, exact = _statistics_of_weights(layer.weights, layer.map), next(precise, None)
            values, keys = layer.map.top(TOP)
            gathered = layer.weights.gather(-1, keys.clamp(min=0)).masked_fill(keys < 0, 0.0)
            names = ("received", "entropy") if layer.map.offset is None else ("received", "entropy", "distance")
            statistics: dict[str, Tensor] = {name: getattr(layer.map, name)() for name in names}
            statistics |= {"pooled matrix": layer.map.pooled(*POOLED), "largest weights": values, "keys": gathered}
            rounded = {} if exact is None else _statistics_of_weights(exact.weights, layer.map)
            for name, value in statistics.items():
                allowed = _allowed(reading, TOLERANCE, _relative(expected[name], rounded[name]) if rounded else None)
                yield Result("", _relative(value, expected[name]), allowed, f"{name} of {layer.name}{suffix}")


def _statistics_of_weights(weights: Float[Tensor, "H L S"], attention: Any) -> dict[str, Tensor]:
    """Compute statistics of the model's own weights in float64. A sink's weight is 1 minus the row's sum."""
    weights = weights.cpu().double()[None]
    sinks = (1 - weights.sum(-1)).clamp(min=0) * (attention.rule.sinks is not None)
    rows, cols = (min(pair) for pair in zip(POOLED, weights.shape[2:], strict=True))
    top = weights.topk(min(TOP, weights.shape[3])).values
    return {
        "received": reference.received(weights), "entropy": reference.entropy(weights, sinks),
        "distance": reference.distance(weights.log(), attention.offset or 0),
        "pooled matrix": reference.pooled(weights, rows, cols), "largest weights": top, "keys": top,
    }  # fmt: skip


def _relative(actual: Tensor, expected: Tensor) -> float:
    """Return the largest difference of two tensors, relative to the largest expected number."""
    largest = float(expected.abs().max())
    return float((actual.cpu() - expected).abs().nan_to_num(math.inf).max()) / (largest or 1.0)


def _regions(reading: CheckedInput) -> Iterator[Result]:
    """Compare a separately computed region of each attention matrix with the model's own weights."""
    allowed = _allowed(reading, TOLERANCE, _rounding(reading, WEIGHTS))
    for layer in layers(reading.trace, reading.output):
        rows, cols = (slice(size // 3, size // 3 + 64) for size in layer.weights.shape[1:])
        differences = (layer.map[:, rows, cols] - layer.weights[:, rows, cols]).abs().nan_to_num(math.inf)
        yield Result("", float(differences.max()), allowed, f"part of {layer.name}")


def _contributions(reading: CheckedInput) -> Iterator[Result]:
    """Compare each token's contribution through each head with weight × value × output projection in float64."""
    if reading.model.model.dtype.itemsize < torch.float32.itemsize:
        raise RegardError("in half precision, contributions add up no better than the model's own sums")
    allowed = _allowed(reading, VECTOR_TOLERANCE, _rounding(reading, WEIGHTS))
    for (name, number, trace, part, _, weights), last in product(layers(reading.trace, reading.output), (False, True)):
        token = len(trace.tokens) - 1 if last else len(trace.tokens) // 2
        computed = contributions(trace, token, number, part=part)
        prefix = "cross_" if part else ""
        values, block = (getattr(trace, f"{prefix}{name}")[number] for name in ("values", "attention_outputs"))
        parts = _components(weights[:, token], values, block, token)
        for quantity, actual, expected in (
            ("lengths", computed.norms, parts.norm(dim=-1)),
            ("fractions", computed.shares, parts @ computed.vector.cpu() / float(computed.vector.norm()) ** 2),
            ("sums of heads", computed.sources(), parts.sum(0)),
            ("sums of tokens", computed.heads(), parts.sum(1)),
        ):
            yield Result("", _relative(actual, expected), allowed, f"{quantity} in {name}, token {token}")


def _components(weights: Float[Tensor, "H S"], values: Any, block: Any, token: int) -> Float[Tensor, "H S M"]:
    """Multiply weights, values and output projection, then apply the block's scaling and norm, if it has them."""
    weights, values, projection = (tensor.cpu().double() for tensor in (weights, values, block.weight))
    projection = projection.unflatten(1, (len(weights), -1)).permute(1, 2, 0)  # (H, E, M)
    parts = weights[..., None] * (values.repeat_interleave(len(weights) // len(values), 0) @ projection)
    if block.scaling is not None:
        parts = parts * (block.scaling.scale[token] * block.scaling.gain).cpu().double()
    if block.norm is not None:
        variance = (block.residual + block.added)[token].cpu().double().var(correction=0) + block.norm.eps
        parts = (parts - parts.mean(-1, keepdim=True)) / variance.sqrt()
        parts = parts if block.norm.weight is None else parts * block.norm.weight.cpu().double()
    return parts


def _ablated_head(reading: CheckedInput) -> Iterator[Result]:
    """Compare ablating a head with running the model's own code with that head's output projection set to 0."""
    trace = reading.trace.sides[-1]
    blocks = {layer: trace.attention_outputs[layer] for layer, _ in trace.attention_outputs.calls}
    weights = {n: block.weight for n, block in blocks.items() if isinstance(block, AttentionOutput)}
    if not weights:
        raise RegardError("regard knows no output projection in it")
    layer = list(weights)[len(weights) // 2]
    number, weight = trace.attention[layer].shape[0] - 1, weights[layer]
    numbers = [n for n, other in weights.items() if other.data_ptr() == weight.data_ptr()]  # layers may share a weight
    ablation = [ablate(head(n, number, part="decoder" if reading.model.pairs else None)) for n in numbers]
    ablated = reading.model.trace(**reading.options, interventions=ablation)
    expected = reading.without_head(weight, slice(number * weight.shape[1] // (number + 1), None))
    effect = largest_difference(expected, reading.output, RESULT)
    for result in _compare(RESULT, [reading], [ablated], [expected]):
        if effect and effect[0] <= (result.allowed or 0.0):
            raise RegardError(f"ablating head {number} of layer {layer} changes too little to compare")
        yield replace(result, where=f"without head {number} of layer {layer}")


def _generation(reading: CheckedInput) -> Iterator[Result]:
    """Compare tokens with those of transformers' `generate`, and weights and logits with a pass over all tokens."""
    if "input_ids" not in reading.inputs:
        raise RegardError("it doesn't read text")
    expected, logits = reading.generate(max_new_tokens=NEW_TOKENS, do_sample=False)
    ids = reading.inputs["input_ids"][0].tolist()
    result = reading.model.generate(ids=ids, max_new_tokens=NEW_TOKENS, do_sample=False)
    wrong = [n for n, (token, other) in enumerate(zip_longest(result.ids, expected)) if token != other]
    yield Result("", math.inf if wrong else 0.0, VECTOR_TOLERANCE, f"token {wrong[0]} differs" if wrong else "")
    sides = [[token.id for token in side.tokens] for side in result.trace.sides]
    full = CheckedInput(reading.model, dict(zip(("ids", "target_ids"), sides, strict=False)))
    if not wrong and _relative(logits, full.output.logits[0, -len(logits) - 1 : -1].cpu()) > MAX_TOLERANCE:
        raise RegardError("its own code gives other logits with a cache than in one pass")
    yield from chain(_compare(WEIGHTS, [full], [result.trace]), _compare(RESULT, [full], [result.trace]))
