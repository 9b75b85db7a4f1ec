"""The one door: every attention computation of the project goes through `attend`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention import ablation, masks
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import dispatch, row_update
from regard.attention.masks import Mask
from regard.attention.recording import current_path, layer_of, recorders
from regard.attention.scores import ScoreRule, working_dtype

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


@dataclass(frozen=True, eq=False)
class Attention:
    """What `attend` returns: the output, and the way to everything that it hides.

    output (B, H, L, E) carries gradients; logsumexp (B, H, L) and weights (B, H, L, S, lazy) do not. Where the inputs
    had fewer axes, so have these. kernel names what computed the output.
    """

    output: Float[Tensor, "..."]
    logsumexp: Float[Tensor, "..."]
    weights: AttentionMap
    kernel: str

    @property
    def valid(self) -> Bool[Tensor, "..."]:
        """(B, H, L): False where a query may attend to nothing (its output and weights are 0, a sink takes all)."""
        return self.logsumexp != -torch.inf if self.weights.rule.sinks is None else self.weights.valid


def attend(
    query: Float[Tensor, "*B L D"],
    key: Float[Tensor, "*G S D"],
    value: Float[Tensor, "*G S E"],
    *,
    mask: Bool[Tensor, "..."] | Mask | None = None,
    bias: Float[Tensor, "..."] | None = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    offset: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Float[Tensor, " H"] | None = None,
    dropout: float = 0.0,
) -> Attention:
    """Exact scaled dot-product attention (Vaswani et al. 2017) whose weights can be seen.

    Shapes: query (B, H, L, D), key (B, G, S, D), value (B, G, S, E) with H a multiple of G; three axes are one batch,
    two are one batch and one head. scores = scale · query·key → softcap → + bias → mask; sinks join the softmax's
    denominator only.

    Args:
        mask: boolean, broadcastable to (B, H, L, S), True means "may attend"; or a `regard.masks` specification.
        bias: additive, broadcastable to (B, H, L, S).
        causal: a query attends to keys at its own position and before.
        window: (left, right), inclusive; None leaves a side open.
        offset: position of query 0 among the keys; by default the last query stands at the last key.
        scale: 1 / sqrt(D) by default.
        softcap: scores become softcap · tanh(scores / softcap).
        sinks: one learned score per head that takes attention and gives no value.
        dropout: probability with which a weight is dropped from the output; `.weights` are before dropout.

    Ablations that are open (`regard.attention.ablation`) are applied: the weights are those without the edges, and the
    output of an ablated head is 0.

    Inside torch.compile it works as it does outside: the graph breaks at the door, whose kernels have nothing to gain
    from being traced, and goes on behind it. `fullgraph=True` therefore raises, naming this as the reason.

    Raises:
        TypeError, ValueError: naming the argument, what was given and what is needed.
    """
    if torch.compiler.is_compiling():
        return _uncompiled()(
            query,
            key,
            value,
            mask=mask,
            bias=bias,
            causal=causal,
            window=window,
            offset=offset,
            scale=scale,
            softcap=softcap,
            sinks=sinks,
            dropout=dropout,
        )
    ndim = query.ndim if isinstance(query, Tensor) else 0
    query, key, value = _four_axes(query, key, value)
    rule, origin = _rule(
        query,
        key.shape[2],
        mask=mask,
        bias=bias,
        causal=causal,
        window=window,
        offset=offset,
        scale=scale,
        softcap=softcap,
        sinks=sinks,
    )
    if not 0.0 <= _finite("dropout", dropout) <= 1.0:
        raise ValueError(f"dropout: given {dropout}, needs to be a probability from 0 to 1")
    here = ablation.CallAblations()
    if opened := ablation.opened():
        path = current_path()
        here = ablation.here(opened, path, layer_of(path), (*query.shape[:3], key.shape[2]))
    if here.removed:
        result = row_update.compute(query, key, value, rule, dropout, here.removed)
        rule = row_update.without(rule, here.removed)
    else:
        result = dispatch.compute(query, key, value, rule, dropout)
    output, logsumexp, kernel, *_ = result
    if here.heads:
        output = ablation.zero_heads(output, here.heads)
    weights = AttentionMap(query, key, rule, offset=origin, ndim=ndim, normaliser=result.row_max_sum)
    records = recorders()
    if records:
        apart = query.detach(), key.detach(), rule.detached()
        seen = AttentionMap(*apart, offset=origin, ndim=ndim, normaliser=result.row_max_sum)
        for calls in records:
            calls.add(current_path(), kernel, seen, here.ablations, value=value, output=output, logsumexp=logsumexp)
    if ndim < 4:
        output = output.reshape(output.shape[4 - ndim :])
        logsumexp = logsumexp.reshape(logsumexp.shape[4 - ndim :])
    return Attention(output, logsumexp.detach(), weights, kernel)


def _uncompiled() -> Callable[..., Attention]:
    """`attend`, kept out of torch.compile's sight. Made at need: the import of torch's compiler takes seconds."""
    if not _made:
        _made.append(torch.compiler.disable(attend, reason="regard's door runs its kernels as they are"))
    return _made[0]


_made: list[Callable[..., Attention]] = []


def _four_axes(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The three tensors with axes (batch, heads, positions, width), checked against each other."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: given {type(tensor).__name__}, needs to be a torch tensor")
        if tensor.dtype not in DTYPES:
            raise TypeError(f"{name}: given {tensor.dtype}, needs to be float64, float32, bfloat16 or float16")
        if tensor.dtype != query.dtype:
            raise TypeError(f"{name}: given {tensor.dtype}, needs to be {query.dtype} as the query is")
        if tensor.device != query.device:
            raise ValueError(f"{name}: given on {tensor.device}, needs to be on {query.device} where the query is")
        if tensor.ndim != query.ndim or not 2 <= tensor.ndim <= 4:
            raise ValueError(
                f"{name}: given shape {tuple(tensor.shape)}, needs 2, 3 or 4 axes (batch, heads, positions, width), as "
                f"many as the query {tuple(query.shape)}"
            )
    if query.ndim < 4:
        front = (None,) * (4 - query.ndim)
        query, key, value = query[front], key[front], value[front]
    if key.shape[3] != query.shape[3]:
        raise ValueError(f"key: given width {key.shape[3]}, needs {query.shape[3]} as the query has")
    if query.shape[3] == 0:
        raise ValueError("query: given width 0, needs at least 1")
    if value.shape[1:3] != key.shape[1:3]:
        raise ValueError(
            f"value: given {value.shape[1]} heads and {value.shape[2]} positions, needs {key.shape[1]} and "
            f"{key.shape[2]} as the key has"
        )
    for name, tensor in (("key", key), ("value", value)):
        if tensor.shape[0] != query.shape[0]:
            raise ValueError(f"{name}: given a batch of {tensor.shape[0]}, needs {query.shape[0]} as the query has")
    heads, groups = query.shape[1], key.shape[1]
    if groups != heads and (groups == 0 or heads % groups):
        raise ValueError(f"key: given {groups} heads, needs a number that divides the query's {heads} heads")
    return query, key, value


def _rule(
    query: Tensor,
    size: int,
    *,
    mask: Any,
    bias: Any,
    causal: bool,
    window: Any,
    offset: int | None,
    scale: float | None,
    softcap: float | None,
    sinks: Any,
) -> tuple[ScoreRule, int | None]:
    """The rule of the scores, and the position of query 0 among the keys where the call tells it."""
    batch, heads, length, width = query.shape
    shape = (batch, heads, length, size)
    if not isinstance(causal, bool):
        raise TypeError(f"causal: given {type(causal).__name__}, needs True or False")
    if isinstance(offset, bool) or not isinstance(offset, int | None):
        raise TypeError(f"offset: given {type(offset).__name__}, needs an integer or None")
    banded = causal or window is not None
    origin = offset if offset is not None else size - length if banded or size == length else None
    whole: Mask | None = None
    if mask is not None:
        whole = mask if isinstance(mask, Mask) else masks.dense(_broadcastable("mask", mask, shape, query))
        _check_mask(whole, shape, query)
    if banded:
        band = masks.window(None, 0, origin or 0) if causal else Mask()
        if window is not None:
            band = band & masks.window(*_window(window), origin or 0)
        whole = band if whole is None else whole & band
    if whole is not None:
        whole = whole.simplified(length, size)
    scale = 1.0 / math.sqrt(width) if scale is None else _held("scale", scale, query)
    if softcap is not None:
        capped, least = _held("softcap", softcap, query), torch.finfo(working_dtype(query)).tiny
        if capped < least:
            raise ValueError(f"softcap: given {softcap}, needs to be above 0 (at least {least:.1e})")
        softcap = capped
    if bias is not None:
        bias = _broadcastable("bias", bias, shape, query)
        if not bias.is_floating_point():
            raise TypeError(f"bias: given {bias.dtype}, needs floating-point scores; a boolean tensor goes into mask")
        bias = bias[(None,) * (4 - bias.ndim)]
    if sinks is not None:
        sinks = _broadcastable("sinks", sinks, (heads,), query)
        if not sinks.is_floating_point():
            raise TypeError(f"sinks: given {sinks.dtype}, needs floating-point scores")
        sinks = sinks.expand(heads)
    return ScoreRule(scale, softcap, bias, whole, sinks), origin


def _window(window: Any) -> tuple[int | None, int | None]:
    if isinstance(window, (tuple, list)) and len(window) == 2 and all(x is None or isinstance(x, int) for x in window):
        return window[0], window[1]
    raise TypeError(f"window: given {window!r}, needs (left, right), each an integer or None")


def _finite(name: str, number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(f"{name}: given {type(number).__name__}, needs a number")
    try:
        real = float(number)
    except OverflowError:  # an integer of more than 300 digits, which is not repeated in the message
        real = math.inf
    if not math.isfinite(real):
        raise ValueError(f"{name}: given {real}, needs a finite number")
    return real


def _held(name: str, number: Any, query: Tensor) -> float:
    """The number where the dtype that scores are computed in can hold it: an infinite factor makes NaN of a 0."""
    real, dtype = _finite(name, number), working_dtype(query)
    if abs(real) > torch.finfo(dtype).max:
        raise ValueError(f"{name}: given {real:g}, needs to be a number that {dtype} holds")
    return real


def _broadcastable(name: str, tensor: Any, shape: tuple[int, ...], query: Tensor) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name}: given {type(tensor).__name__}, needs to be a torch tensor")
    if tensor.device != query.device:
        raise ValueError(f"{name}: given on {tensor.device}, needs to be on {query.device} where the query is")
    tail = shape[len(shape) - tensor.ndim :]
    if tensor.ndim > len(shape) or any(a not in (1, b) for a, b in zip(tensor.shape, tail, strict=True)):
        raise ValueError(f"{name}: given shape {tuple(tensor.shape)}, needs one that broadcasts to {shape}")
    return tensor


def _check_mask(mask: Mask, shape: tuple[int, ...], query: Tensor) -> None:
    """Refuse a specification whose tensors do not fit this call."""
    batch, _, _, size = shape
    if mask.keys is not None:
        _broadcastable("mask", mask.keys, (batch, size), query)
        if mask.keys.shape[1] != size:
            raise ValueError(f"mask: its padding speaks of {mask.keys.shape[1]} keys, there are {size}")
    for tensor in mask.dense:
        _broadcastable("mask", tensor, shape, query)
    for edges in mask.removed:
        if edges.shape != shape:
            raise ValueError(f"mask: its edges are of a call of shape {edges.shape}, needs {shape}")
