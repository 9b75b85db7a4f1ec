"""Write what follows a head's weights: values, the projection W_O, the residual and the norm behind it.

The projection is carried where it was verified: where the heads' parts add up to what the model computed. Else the
values alone are, and the reason why.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.explain.causes.contributions import adds_up
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.layer_subset import CallNumber, call_numbers, kept_numbers
from regard.trace.trace import Trace
from regard.web.numbers import Encoding, NumberStore, vector_bytes_in_page
from regard.web.score_rules import Data


def steps_data(
    call: int,
    weights: AttentionMap,
    values: Float[Tensor, "G S E"],
    output: AttentionOutput | UnverifiedOutput | None,
    entering: Float[Tensor, "L M"] | None,
    numbers: NumberStore,
) -> Data:
    """Write the steps of one call, of all of its heads.

    Args:
        call: its number.
        weights: its map.
        values: what each key gives, of each key head.
        output: what becomes of its output.
        entering: what enters the layer, None where that is not held.
        numbers: of the page, which takes the tensors.
    """
    refused = refusal(weights, values, output)
    data: Data = {
        "call": call,
        "value": numbers.add_vectors(values)[0],
        "projection": None,
        "projection_bias": None,
        "projection_scale": 1.0,
        "residual": None,
        "kind": None,
        "norm": None,
        "entering": None if entering is None else numbers.add_vectors(entering)[0],
        "refused": refused,
    }
    if refused is not None or not isinstance(output, AttentionOutput):
        return data
    norm = output.norm if output.kind == "post-norm" else None
    data |= {
        "projection": numbers.add(output.weight.float()),
        "projection_bias": _listed(output.bias),
        "projection_scale": 1.0 if output.scaling is None else float(output.scaling.scale.flatten()[0]),
        "residual": numbers.add_vectors(output.residual)[0],
        "kind": output.kind,
        "norm": norm
        and {
            "kind": "layer norm",
            "weight": _listed(norm.weight),
            "bias": _listed(norm.bias),
            "epsilon": norm.eps,
        },
    }
    return data


def refusal(
    weights: AttentionMap, values: Float[Tensor, "G S E"], output: AttentionOutput | UnverifiedOutput | None
) -> str | None:
    """Say why a call's projection cannot be carried; None where it can."""
    if output is None:
        return "the trace does not hold what stands around attention: trace with attention_outputs=True"
    if isinstance(output, UnverifiedOutput):
        return output.reason
    if output.scaling is not None and not _constant(output):
        return "the model rescales the projected vector, each token's by a factor of its own"
    if not adds_up(weights, values, output):
        return "the heads' parts do not add up to what the model computed"
    return None


def steps_bytes(
    values: Tensor, output: AttentionOutput | UnverifiedOutput | None, entering: Tensor | None, encoding: Encoding
) -> int:
    """Count how many bytes the steps of a call take at most, before they are deflated.

    Args:
        values, output, entering: as `steps_data` takes them.
        encoding: how the page writes vectors.
    """
    tensors: Sequence[Tensor] = [values, *([] if entering is None else [entering])]
    if isinstance(output, AttentionOutput):
        tensors = [*tensors, output.residual]
    projection = 4 * output.weight.numel() if isinstance(output, AttentionOutput) else 0
    return projection + sum(vector_bytes_in_page(tuple(each.shape), encoding) for each in tensors)


def value_of(values: Sequence[object], call: CallNumber) -> Float[Tensor, "G S E"] | None:
    """The values of a call, None where the trace does not hold them."""
    found = values[call] if call in call_numbers(values) else None  # type: ignore[call-overload]
    assert found is None or isinstance(found, Tensor)
    return found


def output_of(outputs: Sequence[object], call: CallNumber) -> AttentionOutput | UnverifiedOutput | None:
    """What stands around a call, None where the trace does not hold it."""
    found = outputs[call] if call in call_numbers(outputs) else None  # type: ignore[call-overload]
    assert found is None or isinstance(found, (AttentionOutput, UnverifiedOutput))
    return found


def entering_of(trace: Trace, layer: int) -> Float[Tensor, "L M"] | None:
    """The hidden states that enter a layer, None where the trace does not hold them."""
    return trace.hidden_states[layer] if layer in kept_numbers(trace.hidden_states) else None


def _constant(output: AttentionOutput) -> bool:
    """Whether a scaling is one factor for all tokens and components."""
    assert output.scaling is not None
    scale, gain = output.scaling.scale, output.scaling.gain
    return scale.numel() > 0 and bool((scale == scale.flatten()[0]).all()) and bool((gain == 1).all())


def _listed(vector: Float[Tensor, " M"] | None) -> list[float] | None:
    return None if vector is None else [float(value) for value in vector.detach().to(torch.float32).tolist()]
