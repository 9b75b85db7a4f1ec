"""Check the arguments of `attend` and convert them to the tensors and the ScoreRule that kernels use."""

import math
from typing import Any

import torch
from torch import Tensor

from regard.attention import masks
from regard.attention.masks import Mask
from regard.attention.scores import ScoreRule, working_dtype

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def four_axes(query: Any, key: Any, value: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Check that query, key and value match. Returns them with axes (batch, heads, positions, width)."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: got {type(tensor).__name__}, expected a torch tensor")
        if tensor.dtype not in DTYPES:
            raise TypeError(f"{name}: got {tensor.dtype}, expected float64, float32, bfloat16 or float16")
        if tensor.dtype != query.dtype:
            raise TypeError(f"{name}: got {tensor.dtype}, expected {query.dtype}, like the query")
        if tensor.device != query.device:
            raise ValueError(f"{name}: got a tensor on {tensor.device}, expected {query.device}, like the query")
        if tensor.ndim != query.ndim or not 2 <= tensor.ndim <= 4:
            raise ValueError(
                f"{name}: got shape {tuple(tensor.shape)}, expected 2, 3 or 4 axes (batch, heads, positions, width), "
                f"as many as the query {tuple(query.shape)}"
            )
    if query.ndim < 4:
        index = (None,) * (4 - query.ndim)
        query, key, value = query[index], key[index], value[index]
    if key.shape[3] != query.shape[3]:
        raise ValueError(f"key: got width {key.shape[3]}, expected {query.shape[3]}, like the query")
    if query.shape[3] == 0:
        raise ValueError("query: got width 0, expected at least 1")
    if value.shape[1:3] != key.shape[1:3]:
        raise ValueError(
            f"value: got {value.shape[1]} heads and {value.shape[2]} positions, expected {key.shape[1]} and "
            f"{key.shape[2]}, like the key"
        )
    for name, tensor in (("key", key), ("value", value)):
        if tensor.shape[0] != query.shape[0]:
            raise ValueError(f"{name}: got a batch of {tensor.shape[0]}, expected {query.shape[0]}, like the query")
    heads, groups = query.shape[1], key.shape[1]
    if groups != heads and (groups == 0 or heads % groups):
        raise ValueError(f"key: got {groups} heads, expected a divisor of the query's {heads} heads")
    return query, key, value


def score_rule(
    query: Tensor,
    size: int,
    *,
    mask: Any = None,
    bias: Any = None,
    causal: bool = False,
    window: Any = None,
    offset: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Any = None,
) -> tuple[ScoreRule, int | None]:
    """Check the arguments of `attend` that affect the scores. Returns their ScoreRule and the position of query 0.

    The position of query 0 among the keys is None if neither `offset`, `causal` nor `window` is set and L
    differs from S.
    """
    batch, heads, length, width = query.shape
    shape = (batch, heads, length, size)
    if not isinstance(causal, bool):
        raise TypeError(f"causal: got {type(causal).__name__}, expected True or False")
    if isinstance(offset, bool) or not isinstance(offset, int | None):
        raise TypeError(f"offset: got {type(offset).__name__}, expected an integer or None")
    banded = causal or window is not None
    origin = offset if offset is not None else size - length if banded or size == length else None
    allowed: Mask | None = None
    if mask is not None:
        allowed = mask if isinstance(mask, Mask) else masks.dense(mask)
        if allowed.keys is not None:
            _broadcastable_to_scores("mask", allowed.keys, (shape[0], size), query)
            if allowed.keys.shape[1] != size:
                raise ValueError(f"mask: its padding has {allowed.keys.shape[1]} keys, but the call has {size}")
        for tensor in allowed.dense:
            _broadcastable_to_scores("mask", tensor, shape, query)
        for edges in allowed.removed:
            if edges.shape != shape:
                raise ValueError(f"mask: its edges are for a call of shape {edges.shape}, not {shape}")
    if banded:
        band = masks.window(None, 0, origin or 0) if causal else Mask()
        if window is not None:
            pair = isinstance(window, (tuple, list)) and len(window) == 2
            if not pair or not all(x is None or isinstance(x, int) for x in window):
                raise TypeError(f"window: got {window!r}, expected (left, right), each an integer or None")
            band = band & masks.window(window[0], window[1], origin or 0)
        allowed = band if allowed is None else allowed & band
    if allowed is not None:
        allowed = allowed.simplified(length, size)
    dtype = working_dtype(query)
    scale = 1.0 / math.sqrt(width) if scale is None else _finite_number("scale", scale, dtype)
    softcap = None if softcap is None else _finite_number("softcap", softcap, dtype)
    if softcap is not None and softcap < (least := torch.finfo(dtype).tiny):
        raise ValueError(f"softcap: got {softcap:g}, expected a number above 0 (at least {least:.1e})")
    if bias is not None:
        bias = _broadcastable_to_scores("bias", bias, shape, query)
        if not bias.is_floating_point():
            raise TypeError(f"bias: got {bias.dtype}, expected floating-point scores; a boolean tensor goes into mask")
        bias = bias[(None,) * (4 - bias.ndim)]
    if sinks is not None:
        sinks = _broadcastable_to_scores("sinks", sinks, (heads,), query)
        if not sinks.is_floating_point():
            raise TypeError(f"sinks: got {sinks.dtype}, expected floating-point scores")
        sinks = sinks.expand(heads)
    return ScoreRule(scale, softcap, bias, allowed, sinks), origin


def check_attention_dropout(dropout: Any) -> None:
    """Check that `attend`'s dropout is a probability."""
    if not 0.0 <= _finite_number("dropout", dropout) <= 1.0:
        raise ValueError(f"dropout: got {dropout}, expected a probability from 0 to 1")


def _finite_number(name: str, number: Any, dtype: torch.dtype = torch.float64) -> float:
    """Check that dtype can hold a number. An infinite factor of scores times 0 would be NaN."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(f"{name}: got {type(number).__name__}, expected a number")
    if not abs(number) <= torch.finfo(dtype).max:
        got = f"{number:g}" if isinstance(number, float) else "a very large integer"
        raise ValueError(f"{name}: got {got}, expected a finite number that {dtype} can hold")
    return float(number)


def _broadcastable_to_scores(name: str, tensor: Any, shape: tuple[int, ...], query: Tensor) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name}: got {type(tensor).__name__}, expected a torch tensor")
    if tensor.device != query.device:
        raise ValueError(f"{name}: got a tensor on {tensor.device}, expected {query.device}, like the query")
    tail = shape[len(shape) - tensor.ndim :]
    if tensor.ndim > len(shape) or any(a not in (1, b) for a, b in zip(tensor.shape, tail, strict=True)):
        raise ValueError(f"{name}: got shape {tuple(tensor.shape)}, expected a shape that broadcasts to {shape}")
    return tensor
