from dataclasses import replace
from typing import Any

import numpy as np
import torch

from regard.explain.causes.contributions import adds_up, contribution_norms
from regard.trace.attention_output import AttentionOutput, Scaling, UnverifiedOutput
from regard.web.numbers import NumberStore
from regard.web.steps import refusal, steps_data
from tests.support.own_models import opened
from tests.support.web_pages import stored


def test_the_numbers_lead_to_what_the_model_computed(minilm: Any) -> None:
    """Weights, values, W_O, bias, residual and norm of the page give the layer's own attention output."""
    trace, numbers = minilm.trace("A man is fishing on a river bank."), NumberStore()
    weights, values, output = trace.attention[1], trace.values[1], trace.attention_outputs[1]
    data: Any = steps_data(7, weights, values, output, trace.hidden_states[1], numbers)
    assert (data["call"], data["refused"], data["projection_scale"]) == (7, None, 1.0)
    read = stored(numbers)
    dense, bias = weights.dense().double().numpy(), read.numbers(data["projection_bias"])
    assert data["projection"] is None  # of few tokens each key's part is smaller
    projected = np.einsum("hls,hsm->lm", dense, read.vectors(data["projected"])) + bias
    many: Any = steps_data(7, weights, values, output, trace.hidden_states[1], numbers, tokens=64)
    assert many["projected"] is None
    assert many["value"]["values"]["at"] == data["value"]["values"]["at"]  # what is there is not carried twice
    read = stored(numbers)
    context = np.einsum("hls,hse->lhe", dense, read.vectors(data["value"])).reshape(len(trace.tokens), -1)
    own = output.projected.double().numpy()
    of_parts, of_contexts = (
        (abs(found - own).max(1) / abs(own).max(1)).max()
        for found in (projected, context @ read.numbers(many["projection"]).T + bias)
    )
    assert of_parts < 5e-5
    assert of_parts < 2 * of_contexts  # as exact as W_O in float32, times values in int16
    total = read.vectors(data["residual"]) + projected
    norm = data["norm"]
    assert norm["kind"] == "layer norm"
    centred = total - total.mean(1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(1, keepdims=True) + norm["epsilon"])
    normed = normed * read.numbers(norm["weight"]) + read.numbers(norm["bias"])
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
    assert [data[name] for name in ("projection", "projected", "residual", "norm", "entering")] == [None] * 5
    assert len(numbers.blobs) == 2  # the values are there all the same


def test_weight_times_norm_is_the_length_of_what_a_key_gave(minilm: Any) -> None:
    trace = minilm.trace("A man is fishing on a river bank.")
    weights, values, output = trace.attention[2], trace.values[2], trace.attention_outputs[2]
    assert isinstance(output, AttentionOutput)
    norms = contribution_norms(weights, values, output)
    assert norms is not None
    projection = output.weight.view(len(output.weight), 12, -1)
    for head, key in ((0, 0), (5, 3), (11, 9)):
        given = weights[head, 4, key] * (projection[:, head] @ values[head, key])
        torch.testing.assert_close(weights[head, 4, key] * norms[head, key], given.norm(), rtol=1e-3, atol=1e-9)


def test_parts_that_do_not_add_up_have_no_norms(minilm: Any) -> None:
    trace = minilm.trace("A man is fishing.")
    weights, values, output = trace.attention[2], trace.values[2], trace.attention_outputs[2]
    assert isinstance(output, AttentionOutput)
    assert adds_up(weights, values, output)
    wrong = replace(output, weight=1.01 * output.weight)
    assert not adds_up(weights, values, wrong)
    assert contribution_norms(weights, values, wrong) is None


def test_query_heads_that_share_a_value_head_project_it_each_by_their_own_slice() -> None:
    trace = opened("llama").trace("A man is fishing")
    output = trace.attention_outputs[1]
    assert isinstance(output, AttentionOutput)
    values = trace.values[1]
    assert values is not None
    norms = contribution_norms(trace.attention[1], values, output)
    assert norms is not None
    projection = output.weight.view(len(output.weight), 3, -1)
    expected = torch.stack([(values[0] @ projection[:, head].T).norm(dim=1) for head in range(3)])
    torch.testing.assert_close(norms, expected, rtol=1e-3, atol=1e-7)
