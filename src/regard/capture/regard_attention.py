"""Capture a `regard.Transformer`, whose attention calls `attend` itself, with hooks on its attention modules.

A few query rows of every call are computed once more from the definition, in float64 (`attention/reference.py`); the
largest difference goes into the trace's status.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import masks, reference
from regard.attention.recording import Call, open_records
from regard.capture.output_path import follow_context
from regard.capture.session import Session
from regard.capture.state import Capture, Comparison, sampled_rows
from regard.nn.multihead import MultiHeadAttention

DEFINITION = "the definition of attention, in float64, on the same queries and keys"
AT_ONCE = 1 << 20  # numbers of keys that are compared at a time


@contextmanager
def hooked(model: nn.Module, capture: Capture) -> Iterator[None]:
    """Compare and follow every attention call inside the block; the hooks are taken off after."""
    hooks = ExitStack()
    capture.comparison.reference = DEFINITION
    for path, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            hooks.enter_context(module.output.register_forward_pre_hook(partial(_see_context, module, path, capture)))
            if path.endswith(".cross"):
                capture.cross_paths.add(path)
    with hooks:
        yield


def _see_context(
    module: MultiHeadAttention, path: str, capture: Capture, _output: nn.Module, args: tuple[Tensor, ...]
) -> None:
    """Compare and follow a module's context, (B, L, H · E), where it enters its output projection."""
    capture.count_call(path)
    if not capture.keep.call(path):
        return
    context = args[0].unflatten(-1, (module.heads, module.d_v))
    for calls in open_records.get()[-1:]:
        with torch._C.DisableTorchFunction():  # the pass's own tensors are followed, not these
            compare_with_definition(capture.comparison, next(reversed(calls.values())), context)
    if capture.keep.attention_outputs:
        follow_context(context, module)  # last, for what is done with it is followed from here on


def compare_with_definition(comparison: Comparison, call: Call, context: Float[Tensor, "B L H E"]) -> None:
    """Compute a few rows of a call by the definition and remember the largest differences."""
    weights, value = call.weights, call.value
    if value is None or call.ablations:  # what is ablated is not what the definition gives
        return
    query, key, rule = weights.query, weights.key, weights.rule
    rows, every = sampled_rows(query.shape[2]).to(query.device), slice(None)
    keys, share = slice(0, key.shape[2]), query.shape[1] // key.shape[1]
    ours = weights[:, :, rows]
    # in float64 the keys of all heads take much memory in a long text: as many at a time as are small
    step = max(1, AT_ONCE * key.shape[1] // max(1, key.numel()))
    for group in range(0, key.shape[1], step):
        some, heads = slice(group, group + step), slice(group * share, (group + step) * share)
        allowed = None if rule.mask is None else rule.mask.tile(every, heads, rows, keys, query.device)
        bias = None if rule.bias is None else masks.select(rule.bias, every, heads, rows, every)
        exact = reference.attention(
            query[:, heads, rows], key[:, some], value[:, some], mask=allowed, bias=bias, scale=rule.scale
        )
        error = (exact.weights - ours[:, heads]).abs().amax()
        out = (exact.output.transpose(1, 2) - context[:, rows, heads]).abs().amax()
        comparison.add(float(error), float(out), query.shape[0] * len(rows) if group == 0 else 0)


class RegardSession(Session):
    """Runs the captured passes of a `regard.Transformer`."""

    watch = staticmethod(hooked)

    def __init__(self, model: nn.Module, *, name: str, filler: int, pairs: bool) -> None:
        super().__init__(model, name=name, filler=filler, pairs=pairs)
        self.reports_weights = False
