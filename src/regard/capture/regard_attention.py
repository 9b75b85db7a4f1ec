"""Capture a `regard.Transformer`, which already uses `attend`, with hooks on its attention modules.

A few query rows of each call are recomputed from the definition in float64 (`attention/reference.py`). The trace's
status reports the largest difference.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import masks, reference
from regard.attention.attention_map import AttentionMap
from regard.attention.recording import Call, open_records
from regard.attention.scores import ScoreRule
from regard.capture.output_path import follow_context
from regard.capture.session import Session
from regard.capture.state import Capture, Comparison, compared_batch_texts, sampled_rows
from regard.nn.multihead import MultiHeadAttention
from regard.trace.status import DEFINITION

EVERY = slice(None)
AT_ONCE = 1 << 20  # largest number of key components in float64 at a time


@contextmanager
def hooked(model: nn.Module, capture: Capture) -> Iterator[None]:
    """Compare and follow all attention calls inside the block with hooks, which are removed after it."""
    capture.comparison.reference = DEFINITION
    with ExitStack() as hooks:
        for path, module in model.named_modules():
            if isinstance(module, MultiHeadAttention):
                hook = partial(_compare_and_follow_context, module, path, capture)
                hooks.enter_context(module.output.register_forward_pre_hook(hook))
                if path.endswith(".cross"):
                    capture.cross_paths.add(path)
        yield
    alike: dict[Any, list[tuple[Tensor, ...]]] = {}  # calls of one shape without mask, bias and sinks are joined
    for call, context, texts in capture.to_compare or ():
        query, key, rule = call.weights.query, call.weights.key, call.weights.rule
        if call.value is None or call.ablations or any(x is not None for x in (rule.mask, rule.bias, rule.sinks)):
            compare_with_definition(capture.comparison, call, context, texts)
            continue
        kind = rule.scale, rule.softcap, query.shape[1:], key.shape[1:], call.value.shape[1:], query.dtype
        alike.setdefault(kind, []).append((query[texts], key[texts], call.value[texts], context[texts]))
    for (scale, softcap, *_), group in alike.items():
        query, key, value, context = (torch.cat(parts) for parts in zip(*group, strict=True))
        joined = replace(call, source=AttentionMap(query, key, ScoreRule(scale, softcap)), value=value)
        compare_with_definition(capture.comparison, joined, context)


def _compare_and_follow_context(
    module: MultiHeadAttention, path: str, capture: Capture, _output: nn.Module, args: tuple[Tensor, ...]
) -> None:
    """Compare and follow a module's context, (B, L, H · E), as it enters its output projection."""
    capture.count_call(path)
    if not capture.keep.call(path):
        return
    context = args[0].unflatten(-1, (module.heads, module.d_v))
    for calls in open_records.get()[-1:]:
        call, texts = next(reversed(calls.values())), compared_batch_texts(capture.call_count, context.shape[0])
        with torch._C.DisableTorchFunction():  # these operations aren't followed
            if capture.to_compare is None:
                compare_with_definition(capture.comparison, call, context, texts)
            else:
                capture.to_compare.append((call, context, texts))
    if capture.keep.attention_outputs:
        follow_context(context, module)  # last, because all later operations are followed


def compare_with_definition(
    comparison: Comparison, call: Call, context: Float[Tensor, "B L H E"], texts: slice = EVERY
) -> None:
    """Compute a few rows of a call from the definition and keep the largest differences. texts: the compared texts."""
    weights, value = call.weights, call.value
    if value is None or call.ablations:  # the definition doesn't include ablations
        return
    query, key, rule = weights.query[texts], weights.key[texts], weights.rule
    rows, keys = sampled_rows(query.shape[2]).to(query.device), slice(0, key.shape[2])
    share = query.shape[1] // key.shape[1]
    computed = weights.rows(slice(*texts.indices(len(weights.query))), rows)
    # a few heads at a time, because float64 keys of a long text need much memory
    step = max(1, AT_ONCE * key.shape[1] // max(1, key.numel()))
    for group in range(0, key.shape[1], step):
        key_heads, heads = slice(group, group + step), slice(group * share, (group + step) * share)
        allowed = None if rule.mask is None else rule.mask.tile(texts, heads, rows, keys, query.device)
        bias = None if rule.bias is None else masks.select(rule.bias, texts, heads, rows, EVERY)
        scores: dict[str, Any] = {"mask": allowed, "bias": bias, "scale": rule.scale, "softcap": rule.softcap}
        exact = reference.attention(query[:, heads, rows], key[:, key_heads], value[texts, key_heads], **scores)
        error = (exact.weights - computed[:, heads]).abs().amax()
        out = (exact.output.transpose(1, 2) - context[texts][:, rows, heads]).abs().amax()
        comparison.add(float(error), float(out), query.shape[0] * len(rows) if group == 0 else 0)


class RegardSession(Session):
    """Run the captured passes of a `regard.Transformer`."""

    watch, reports_weights = staticmethod(hooked), False
