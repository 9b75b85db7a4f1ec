from dataclasses import replace
from typing import Any

import numpy as np
import torch

from regard.trace.attention_output import AttentionOutput, Scaling, UnverifiedOutput
from regard.web.numbers import NumberStore
from regard.web.steps import entering_of, output_of, refusal, steps_bytes, steps_data, value_of
from tests.support.web_pages import stored


def test_the_numbers_lead_to_what_the_model_computed(minilm: Any) -> None:
    """Weights, values, W_O, bias, residual and norm of the page give the layer's own attention output."""
    trace, numbers = minilm.trace("A man is fishing on a river bank."), NumberStore()
    weights, values, output = trace.attention[1], trace.values[1], trace.attention_outputs[1]
    data: Any = steps_data(7, weights, values, output, trace.hidden_states[1], numbers)
    assert (data["call"], data["refused"], data["projection_scale"]) == (7, None, 1.0)
    read = stored(numbers)
    value, projection = read.vectors(data["value"]), read.numbers(data["projection"])
    context = np.einsum("hls,hse->lhe", weights.dense().double().numpy(), value).reshape(len(trace.tokens), -1)
    projected = context @ projection.T + np.array(data["projection_bias"])
    assert abs(projected - output.projected.double().numpy()).max() < 1e-3
    total = read.vectors(data["residual"]) + projected
    norm = data["norm"]
    assert norm["kind"] == "layer norm"
    centred = total - total.mean(1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(1, keepdims=True) + norm["epsilon"])
    normed = normed * np.array(norm["weight"]) + np.array(norm["bias"])
    own = torch.nn.functional.layer_norm(
        output.residual + output.added, (384,), output.norm.weight, output.norm.bias, output.norm.eps
    )
    assert abs(normed - own.double().numpy()).max() < 5e-3
    entering = read.vectors(data["entering"])
    assert abs(entering - trace.hidden_states[1].double().numpy()).max() < 1e-3


def test_what_cannot_be_carried_is_said(minilm: Any) -> None:
    trace = minilm.trace("A man is fishing.")
    weights, values, output = trace.attention[1], trace.values[1], trace.attention_outputs[1]
    assert isinstance(output, AttentionOutput)
    assert refusal(weights, values, output) is None
    wrong = replace(output, weight=1.1 * output.weight)
    assert refusal(weights, values, wrong) == "the heads' parts do not add up to what the model computed"
    assert refusal(weights, values, UnverifiedOutput("a gate")) == "a gate"
    assert "trace with attention_outputs=True" in str(refusal(weights, values, None))
    scale = torch.rand(len(trace.tokens), 1)
    scaling = Scaling(scale, torch.ones(384), scale * output.projected)
    assert "each token's by a factor of its own" in str(refusal(weights, values, replace(output, scaling=scaling)))
    numbers = NumberStore()
    data = steps_data(0, weights, values, wrong, None, numbers)
    assert (data["projection"], data["residual"], data["norm"], data["entering"]) == (None,) * 4
    assert len(numbers.blobs) == 2  # the values are there all the same


def test_what_a_trace_holds(minilm: Any) -> None:
    trace = minilm.trace("A man", attention_outputs=False, layers=[2])
    assert value_of(trace.values, (2, 0)) is not None
    assert value_of(trace.values, (1, 0)) is None
    assert output_of(trace.attention_outputs, (2, 0)) is None
    assert entering_of(trace, 2) is trace.hidden_states[2]


def test_the_bytes_of_steps(minilm: Any) -> None:
    trace, numbers = minilm.trace("A man is fishing."), NumberStore("float32")
    values, output = trace.values[1], trace.attention_outputs[1]
    steps_data(0, trace.attention[1], values, output, trace.hidden_states[1], numbers)
    raw = sum(len(blob) for blob in stored(numbers).blobs.values())
    assert steps_bytes(values, output, trace.hidden_states[1], "float32") == raw
