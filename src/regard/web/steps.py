"""Write what follows a head's weights: values, the projection W_O, the residual and the norm behind it.

The projection is carried where it was verified: where the heads' parts add up to what the model computed. Else the
values alone are, and the reason why. Of few tokens W_O · value of every head and key takes its place, which is smaller
and leads to the same numbers.
"""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.explain.causes.contributions import adds_up, projected_values
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
    tokens: int = 0,
) -> Data:
    """Write the steps of one call, of all of its heads."""
    refused = refusal(weights, values, output)
    data: Data = {
        "call": call, "value": numbers.add_vectors(values)[0], "projection": None, "projected": None,
        "projection_bias": None, "projection_scale": 1.0, "residual": None, "kind": None, "norm": None,
        "entering": None if entering is None else numbers.add_vectors(entering)[0], "refused": refused,
    }  # fmt: skip
    if refused is not None or not isinstance(output, AttentionOutput):
        return data
    norm = output.norm if output.kind == "post-norm" else None
    whole, parts = _projection_bytes(values, output, numbers.encoding, max(tokens, values.shape[1]))
    data |= {
        "projection": None if parts < whole else numbers.add(output.weight.float()),
        "projected": numbers.add_vectors(projected_values(values, output))[0] if parts < whole else None,
        "projection_bias": _carried(output.bias, numbers),
        "projection_scale": 1.0 if output.scaling is None else float(output.scaling.scale.flatten()[0]),
        "residual": numbers.add_vectors(output.residual)[0],
        "kind": output.kind,
        "norm": norm and {
            "kind": "layer norm", "weight": _carried(norm.weight, numbers), "bias": _carried(norm.bias, numbers),
            "epsilon": norm.eps,
        },
    }  # fmt: skip
    return data


def _projection_bytes(values: Tensor, output: AttentionOutput, encoding: Encoding, tokens: int) -> tuple[int, int]:
    """How many bytes W_O takes, and W_O · values of so many tokens."""
    shape = output.weight.shape[1] // values.shape[-1], tokens, len(output.weight)
    return 4 * output.weight.numel(), vector_bytes_in_page(shape, encoding)


def refusal(
    weights: AttentionMap, values: Float[Tensor, "G S E"], output: AttentionOutput | UnverifiedOutput | None
) -> str | None:
    """Say why a call's projection cannot be carried; None where it can."""
    if output is None:
        return "the trace does not hold what stands around attention: trace with attention_outputs=True"
    if isinstance(output, UnverifiedOutput):
        return output.reason
    scaling = output.scaling
    if scaling is not None and not (
        scaling.scale.numel() and bool((scaling.scale == scaling.scale.flatten()[0]).all() & (scaling.gain == 1).all())
    ):
        return "the model rescales the projected vector, each token's by a factor of its own"
    if not adds_up(weights, values, output):
        return "the heads' parts do not add up to what the model computed"
    return None


def steps_bytes(
    values: Tensor,
    output: AttentionOutput | UnverifiedOutput | None,
    entering: Tensor | None,
    encoding: Encoding,
    tokens: int = 0,
) -> int:
    """Count how many bytes the steps of a call take at most, before they are deflated."""
    tensors = [values, entering, output.residual if isinstance(output, AttentionOutput) else None]
    size = sum(vector_bytes_in_page(tuple(tensor.shape), encoding) for tensor in tensors if tensor is not None)
    if not isinstance(output, AttentionOutput):
        return size
    tokens = max(tokens, values.shape[1])
    return size + min(_projection_bytes(values, output, encoding, tokens)) * values.shape[1] // max(tokens, 1)


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


def _carried(vector: Float[Tensor, " M"] | None, numbers: NumberStore) -> Data | None:
    return None if vector is None else numbers.add(vector.float())
