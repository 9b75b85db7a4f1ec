from dataclasses import replace
from typing import Any

import torch

from regard.explain.causes.contributions import adds_up
from regard.trace.attention_output import AttentionOutput
from regard.web.contribution_norms import contribution_norms
from tests.support.own_models import opened


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
