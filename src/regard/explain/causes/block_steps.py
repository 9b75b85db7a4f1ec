"""Compute what follows a head's context: all heads side by side, the projection W_O, the residual, and the norm.

    joined    = the contexts of all heads, each weights @ value                 (H * E)
    projected = W_O @ joined + bias, scaled where the model scales it           (M)
    total     = residual + projected                                            (M)
    normed    = norm(total), where the norm stands behind the residual          (M)

`regard.explain.head_steps` has the way to one head's context. What stands around attention is read from the trace, and
the projection is held against what the model itself computed.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from regard.errors import RegardError
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace

TOLERANCE = 1e-4  # of the largest component: how far the projection may be from the model's own


@dataclass(frozen=True, eq=False)
class BlockSteps:
    """One token's way from its heads' contexts to what leaves the attention block, in float64.

    entering: the hidden states of all tokens as they enter the layer, None where the trace does not hold them. joined:
    as the module has it, heads of them. projected, residual, total: None where refused says why. normed: None where the
    norm does not stand behind the residual. kind: as in `AttentionOutput`. error: how far projected is from that of the
    model.
    """

    entering: Float[Tensor, "L M"] | None
    heads: int
    joined: Float[Tensor, " C"]
    projected: Float[Tensor, " M"] | None
    residual: Float[Tensor, " M"] | None
    total: Float[Tensor, " M"] | None
    normed: Float[Tensor, " M"] | None
    kind: str | None
    error: float | None
    refused: str | None


def block_steps(trace: Trace, token: int, layer: int) -> BlockSteps:
    """Compute them for one token of a trace in one layer."""
    if not 0 <= token < len(trace.tokens):
        raise RegardError(f"token {token} is out of range: there are tokens 0 to {len(trace.tokens) - 1}")
    value = trace.values[layer]
    if value is None:
        raise RegardError(f"the trace does not hold the values of layer {layer}")
    weights = trace.attention[layer][:, token].double().cpu()  # (H, S)
    each = len(weights) // len(value)
    context = torch.einsum("hs,hse->he", weights, value.double().cpu().repeat_interleave(each, 0))
    joined = context.flatten()
    entering = trace.hidden_states[layer].double().cpu() if layer in kept_numbers(trace.hidden_states) else None
    held = layer in kept_numbers(trace.attention_outputs) if len(trace.attention_outputs) else False
    output = trace.attention_outputs[layer] if held else None
    if not isinstance(output, AttentionOutput):
        why = output.reason if isinstance(output, UnverifiedOutput) else "the trace does not hold what stands around it"
        return BlockSteps(entering, len(weights), joined, None, None, None, None, None, None, why)
    projected = output.weight.double().cpu() @ joined
    if output.bias is not None:
        projected = projected + output.bias.double().cpu()
    if output.scaling is not None:
        scale, gain = output.scaling.scale[token].double().cpu(), output.scaling.gain.double().cpu()
        projected = scale * gain * projected
    own = output.added[token].double().cpu()
    error = float((projected - own).abs().max())
    if error > TOLERANCE * max(1.0, float(own.abs().max())):
        raise RegardError(f"layer {layer}: W_O times the heads' contexts is {error:.1e} from what the model computed")
    residual = output.residual[token].double().cpu()
    total = residual + projected
    norm, normed = output.norm, None
    if norm is not None and output.kind == "post-norm":
        parts = [None if part is None else part.double().cpu() for part in (norm.weight, norm.bias)]
        normed = F.layer_norm(total, total.shape, parts[0], parts[1], norm.eps)
    return BlockSteps(
        entering, len(weights), joined, projected, residual, total, normed, output.kind, error, None
    )  # fmt: skip
