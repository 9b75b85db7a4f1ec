"""Check and use the attention weights that a model reports, if it computes attention in its own code.

Such attention doesn't go through `attend`, so maps aren't lazy: the model computes all weights, with O(L × S) memory.
regard accepts them if they are distributions over the tokens and a factor of a product in the forward pass, and if the
pass without them gives the same result. Anything else raises an error that names it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.attention_map import AttentionMap
from regard.attention.recording import Call
from regard.attention.scores import ScoreRule
from regard.capture.operations import MATRIX_PRODUCTS, SOFTMAXES, OperationMode, tensors_within
from regard.capture.state import Capture, LayerStack
from regard.errors import RegardError
from regard.model_files.suppress_warnings import quiet

KERNEL = "the family's own eager attention"
NOTE = (
    "This model computes attention in its own code, so regard shows the weights that it reports. Contributions and "
    "ablations aren't available. Steering and patching of hidden states and feed-forward outputs are."
)
ROUNDED = "The model rounds its weights to half precision. They are rescaled so that each row sums to 1."
REPORTED = "the weights that the model reports"
REASON = "its attention does not go through the attention interface of transformers"
SUMS = 1e-5  # allowed difference of a row's sum from 1: about a hundred float32 roundings
# Largest difference of equal states, relative to the largest value. Rounding differences of kernels add up over layers,
# but a different computation differs by far more.
SAME = 1e-4


def attention_settings(modules: Iterable[nn.Module]) -> list[tuple[Any, str | None]]:
    """Return (config, attention setting) for all configs of a model with these modules."""
    candidates: list[Any] = []
    for module in modules:
        if "config" in vars(module) or hasattr(type(module), "config"):  # a failing getattr of a module is slow
            candidates.append(getattr(module, "config", None))
    configs: dict[int, Any] = {}
    for config in candidates:  # the list grows by the configs of submodels
        if hasattr(config, "_attn_implementation_internal") and id(config) not in configs:
            configs[id(config)] = config
            candidates += [getattr(config, name, None) for name in config.sub_configs]
    return [(config, config._attn_implementation_internal) for config in configs.values()]


@contextmanager
def settings_put_back(modules: Iterable[nn.Module]) -> Iterator[list[Any]]:
    """Yield the configs of a model with these modules, and restore their attention settings after the block."""
    before = attention_settings(modules)
    try:
        yield [config for config, _ in before]
    finally:
        for config, name in before:  # individually: a submodel may not support the model's setting
            config._attn_implementation_internal = name


class Products(OperationMode):
    """Keep the factors of every matrix product in a pass, and count every softmax as an attention call."""

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self.capture = capture
        self.factors: list[Tensor] = []

    def _operation(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        if name in MATRIX_PRODUCTS:
            self.factors.extend(tensor for tensor in tensors_within(args) if tensor.is_floating_point())
        self.capture.call_count += name in SOFTMAXES
        return func(*args, **kwargs)

    def has(self, weights: Tensor) -> bool:
        """Return whether a tensor, or a view or copy of it, was a factor of a product."""
        address = weights.untyped_storage().data_ptr()
        alike = [factor for factor in self.factors if factor.numel() == weights.numel()]
        return any(factor.untyped_storage().data_ptr() == address for factor in alike) or any(
            torch.equal(factor.reshape(weights.shape), weights) for factor in alike
        )


@contextmanager
def reporting(model: Any, capture: Capture) -> Iterator[Products]:
    """Run a model with its own eager attention inside the block, and yield the factors of its products."""
    with settings_put_back(model.modules()) as configs, Products(capture) as products:
        for config in configs:  # not through set_attn_implementation, which skips such models
            config._attn_implementation_internal = "eager"
        yield products


def reported_calls(
    output: Any,
    stacks: dict[str, LayerStack],
    products: Products,
    capture: Capture,
    name: str,
    sizes: Sequence[Sequence[int]],
    *,
    changed: bool = False,
) -> tuple[list[Call], dict[str, LayerStack]]:
    """Return the attention calls that a pass reported, and each sequence's stack of layers by path."""
    if len(sizes) == 1:
        fields = [("attentions", "hidden_states", 0, 0)]
    else:
        fields = [
            ("encoder_attentions", "encoder_hidden_states", 0, 0),
            ("decoder_attentions", "decoder_hidden_states", 1, 1),
            ("cross_attentions", "decoder_hidden_states", 1, 0),
        ]
    capture.comparison.reference = REPORTED
    calls: list[Call] = []
    by_path: dict[str, LayerStack] = {}
    for field, states, rows, cols in fields:
        reported = [weights for weights in getattr(output, field, None) or () if weights is not None]
        if not reported:
            raise RegardError(f"model {name!r}: {REASON}, and it reports no weights ({field}): it cannot be traced")
        reported_states = None if changed else getattr(output, states, None)
        stack = _stack_of_reported_states(stacks, len(reported), reported_states, field, name)
        stack = by_path.setdefault(stack.path, stack)  # a decoder's self- and cross-attention share a stack
        for n, weights in enumerate(reported):
            label = f"model {name!r}: {REASON}, and its {field}[{n}]"
            _check_reported_weights(weights, (sizes[rows], sizes[cols]), products, label)
            path = f"{stack.path}.{n}" + (".cross" if field == "cross_attentions" else "")
            if field == "cross_attentions":
                capture.cross_paths.add(path)
            shown = map_of_reported_weights(weights.detach(), rows == cols)
            capture.comparison.add(
                float((shown.dense() - weights).abs().max()), 0.0, weights.shape[0] * weights.shape[2]
            )
            calls.append(Call(path, 0, KERNEL, shown, None, None, None))
            stack.calls[path, 0] = n
    return calls, by_path


def map_of_reported_weights(weights: Float[Tensor, "B H L S"], itself: bool) -> AttentionMap:
    """Make a map of known weights. Their logarithms are the bias; queries and keys are zero.

    itself: whether queries and keys are in the same sequence.
    """
    weights = weights if weights.dtype == torch.float64 else weights.float()
    batch, heads, length, size = weights.shape
    query, key = weights.new_zeros(batch, heads, length, 1), weights.new_zeros(batch, 1, size, 1)
    return AttentionMap(query, key, ScoreRule(1.0, bias=weights.log()), offset=0 if itself else None)


def check_plain(model: Any, inputs: dict[str, Any], output: Any, name: str) -> None:
    """Check that a model's result doesn't change if it returns its weights."""
    with quiet(), torch.no_grad():
        plain = model(**inputs)[0]
    difference = _difference_from_plain(output[0], plain)
    if difference is None:
        return
    message = f"model {name!r}: its result changes by {difference:.0e} when its weights are asked for"
    with quiet(), torch.no_grad(), reporting(model, Capture()):
        eagerly = model(**inputs)[0]
    if _difference_from_plain(output[0], eagerly) is None:  # such as Falcon with ALiBi
        raise RegardError(
            f"{message}: its eager attention, which returns weights, differs from the "
            f"{model.config._attn_implementation!r} it runs with. To trace it as it runs eagerly, "
            "pass regard.load the model object that from_pretrained(..., attn_implementation='eager') makes"
        )
    raise RegardError(f"{message}: it cannot be traced")


def _difference_from_plain(result: Tensor, plain: Tensor) -> float | None:
    """Return the difference of a result from the plain pass, or None if it is only rounding."""
    difference = float((result - plain).abs().max())
    limit = _limit_for_dtype(SAME, plain.dtype) * max(float(plain.abs().max()), 1.0)
    return None if difference <= limit else difference


def _stack_of_reported_states(
    stacks: dict[str, LayerStack], count: int, states: Any, field: str, name: str
) -> LayerStack:
    """Return the stack of `count` layers with the states that the model reports."""
    are_tensors = isinstance(states, (tuple, list)) and all(isinstance(state, Tensor) for state in states)
    states = [state.detach() for state in states] if are_tensors and len(states) == count + 1 else None
    for stack in stacks.values():
        if states is None:
            same = stack.count == count + 1
        else:
            pairs = zip([*stack.hidden_states.values()][:-1], states, strict=False)
            same = len(stack.hidden_states) == count + 1 and all(
                a.shape == b.shape  # equal except for rounding; 1e-3 is the scale for near-zero states
                and float((a - b).abs().max()) <= _limit_for_dtype(SAME, b.dtype) * max(float(b.abs().max()), 1e-3)
                for a, b in pairs
            )
        if same:
            return stack
    if states is None:
        layers = ", ".join(f"{path} of {len(stack.hidden_states) - 1}" for path, stack in stacks.items()) or "none"
        raise RegardError(
            f"model {name!r}: {REASON}, and its {count} {field} belong to no stack of layers, found {layers}"
        )
    # for layers in several lists, such as XLM's; this isn't the path of a module
    return LayerStack(f"{field.replace('cross', 'decoder')} of no list", dict(enumerate(states)), len(states), True)


def _limit_for_dtype(limit: float, dtype: torch.dtype) -> float:
    """Raise a float32 limit to the rounding error of a narrower dtype."""
    return max(limit, 8 * torch.finfo(dtype).eps)


def _check_reported_weights(
    weights: Tensor, sizes: tuple[Sequence[int], Sequence[int]], products: Products, label: str
) -> None:
    """Check that weights are a (B, H, L, S) tensor of distributions and were a factor of a product."""
    rows, cols = sizes
    if not isinstance(weights, Tensor) or weights.ndim != 4 or weights.shape[0] != len(rows):
        raise RegardError(f"{label} aren't weights (B, H, L, S), so it can't be traced")
    if (weights.shape[2], weights.shape[3]) != (max(rows), max(cols)):
        raise RegardError(
            f"{label} have shape {tuple(weights.shape)}, expected {max(rows)} queries and {max(cols)} keys, so it "
            "can't be traced"
        )
    for n, (length, size) in enumerate(zip(rows, cols, strict=True)):
        rows_of_text = weights[n, :, :length]
        error = float((rows_of_text[..., :size].sum(-1) - 1).abs().max())
        if bool((rows_of_text < 0).any()) or not error <= _limit_for_dtype(SUMS, rows_of_text.dtype):
            raise RegardError(f"{label} aren't distributions over the tokens (sums are off by {error:.0e})")
    if not products.has(weights):
        raise RegardError(f"{label} are in no product of its forward pass: what its output is made of is not known")
