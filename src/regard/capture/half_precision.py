"""Measure how far a model that computes in half precision is from float32 arithmetic on the same weights.

What is compared with the model's own attention is compared on queries and keys that are rounded already, so the
difference of weights that a status tells says nothing of that rounding. Here the model runs twice, over the beginning
of a text: as it is, and with every weight raised to float32 where it is used, which copies none of the large ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture.inputs import ModelInput
from regard.capture.options import CaptureOptions
from regard.errors import RegardError
from regard.model_files.stored_weight import HALVES, StoredWeight
from regard.text.tokens import Encoded

FIRST = 64  # tokens of a text that are run twice


def half_precision_notes(session: Any, source: Encoded, target: Encoded | None, name: str) -> tuple[str, ...]:
    """Say how far a model's half-precision arithmetic is from float32's.

    session: the model's. source: a text that it reads. target: of an encoder-decoder, what its decoder reads. name: of
    its dtype.
    """
    model = session.model
    first, written = _beginning(source), None if target is None else [_beginning(target)]
    keep = CaptureOptions(logits=False, attention_outputs=False)
    with session.alone():
        half = session.run([first], written, [()], keep)
        try:
            with torch.autocast(model.device.type, enabled=False), _computing_in_float32(model):
                full = session.run([_widened(first)], written, [()], keep)
        except (RegardError, RuntimeError, TypeError) as error:  # families insist on a dtype of their own in many ways
            return (f"The model computes in {name}. A comparison with float32 isn't available ({error}).",)
    weights = [
        float((ours.weights.dense() - theirs.weights.dense()).abs().max())
        for ours, theirs in zip(half.calls, full.calls, strict=True)
    ]
    states = [
        float((half.last[key].float() - wide).abs().max() / wide.abs().max().clamp(min=1e-30))
        for key, wide in full.last.items()
    ]
    return (
        f"The model computes in {name}. Compared with float32, attention weights differ by up to "
        f"{max(weights, default=0.0):.1e} and last states by up to {max(states, default=0.0):.1e} of their largest "
        f"number (first {len(half.sources[0].tokens)} tokens).",
    )


def _beginning(text: Encoded) -> Encoded:
    """The first tokens of a text; other inputs whole."""
    if isinstance(text, ModelInput):
        return text
    return replace(text, tokens=text.tokens[:FIRST], segments=None if text.segments is None else text.segments[:FIRST])


def _widened(text: Encoded) -> Encoded:
    """The same input, its tensors in float32."""
    if not isinstance(text, ModelInput) or text.tensors is None:
        return text
    wide = {name: tensor.float() if tensor.dtype in HALVES else tensor for name, tensor in text.tensors.items()}
    return replace(text, tensors=wide)


@contextmanager
def _computing_in_float32(model: nn.Module) -> Iterator[None]:
    """Inside the block a model's weights are raised to float32 where they are used; its own come back after it."""
    replaced: list[tuple[Any, str, Tensor]] = []
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            replaced += [(tensors, name, x) for name, x in tensors.items() if x is not None and x.dtype in HALVES]
    try:
        for tensors, name, tensor in replaced:
            wide = StoredWeight.of(tensor.detach()) if tensor.ndim > 1 else tensor.detach().float()
            tensors[name] = nn.Parameter(wide, requires_grad=False) if isinstance(tensor, nn.Parameter) else wide
        yield
    finally:
        for tensors, name, tensor in replaced:
            tensors[name] = tensor
