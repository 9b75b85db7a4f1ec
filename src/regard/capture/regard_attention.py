"""How a transformer of ours is watched: its attention calls the door itself, so it only has to be looked at.

A few query rows of every call are computed once more from the definition, in float64 (`attention/reference.py`); the
largest difference goes into the trace's status.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import masks, reference
from regard.attention.recording import Call, recorders
from regard.capture.comparison import sampled_rows
from regard.capture.hf_attention import Capture
from regard.capture.output_path import announce
from regard.capture.session import Session
from regard.nn.multihead import MultiHeadAttention

DEFINITION = "the definition of attention, in float64, on the same queries and keys"


class RegardSession(Session):
    """Session passes of a `regard.Transformer`."""

    def __init__(self, model: Any, *, name: str, filler: int, pairs: bool) -> None:
        super().__init__(model, name=name, filler=filler, pairs=pairs)
        self.own = False  # its attention comes to the door

    def _way(self, watch: Capture) -> Any:
        return watched(self.model, watch)


@contextmanager
def watched(model: nn.Module, watch: Capture) -> Iterator[None]:
    """Tell the watch of every attention call of the model inside the block; its mode and hooks come back after."""
    training, handles = model.training, []
    watch.comparison.reference = DEFINITION
    for path, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            handles.append(module.output.register_forward_pre_hook(_seen(module, path, watch)))
            if path.endswith(".cross"):
                watch.crossing.add(id(module))
    try:
        model.eval()
        yield
    finally:
        model.train(training)
        for handle in handles:
            handle.remove()


def _seen(module: MultiHeadAttention, path: str, watch: Capture) -> Any:
    """What happens where a module's context, (B, L, H · E), enters its output projection."""

    def hook(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
        watch.calls += 1
        if not watch.keep.call(path):
            return
        context = args[0].unflatten(-1, (module.heads, module.d_v))
        for calls in recorders()[-1:]:
            _compare(watch, next(reversed(calls.values())), context)
        if watch.keep.attention_outputs:
            announce(context, module)  # last, for what is done with it is followed from here on

    return hook


def _compare(watch: Capture, call: Call, context: Float[Tensor, "B L H E"]) -> None:
    """Compute a few rows of a call by the definition and remember the largest differences."""
    weights, value = call.weights, call.value
    if value is None or call.ablations:  # what is ablated is not what the definition gives
        return
    query, key, rule = weights.query, weights.key, weights.rule
    rows, every = sampled_rows(query.shape[2]).to(query.device), slice(None)
    keys = slice(0, key.shape[2])
    allowed = None if rule.mask is None else rule.mask.tile(every, every, rows, keys, query.device)
    bias = None if rule.bias is None else masks.select(rule.bias, every, every, rows, every)
    exact = reference.attention(query[:, :, rows], key, value, mask=allowed, bias=bias, scale=rule.scale)
    apart = (exact.weights - weights[:, :, rows]).abs().amax()
    out = (exact.output.transpose(1, 2) - context[:, rows]).abs().amax()
    watch.comparison.add(float(apart), float(out), query.shape[0] * len(rows))
