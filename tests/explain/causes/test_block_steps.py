"""What follows a head's context is that of the model: the heads' steps, its own modules, or the reason why not."""

from dataclasses import replace

import pytest
import torch

from regard.errors import RegardError
from regard.explain.causes.block_steps import block_steps
from regard.textbook import head_steps
from tests.support import make_tiny


def test_the_way_through_minilms_block_is_that_of_its_own_modules(bank, minilm) -> None:
    trace, token, layer = bank[0], 11, 3
    found = block_steps(trace, token, layer)
    assert (found.heads, found.kind, found.refused) == (12, "post-norm", None)
    for head in range(12):
        own = head_steps(trace, token, layer, head).context
        torch.testing.assert_close(found.joined[head * 32 : (head + 1) * 32], own, atol=1e-5, rtol=0)
    output = minilm.model.encoder.layer[layer].attention.output
    joined = found.joined.float()[None]
    torch.testing.assert_close(found.projected.float(), output.dense(joined)[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(found.residual.float(), trace.hidden_states[layer][token])
    torch.testing.assert_close(found.total, found.residual + found.projected)
    expected = output(joined, trace.hidden_states[layer][[token]])[0]
    torch.testing.assert_close(found.normed.float(), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(found.entering.float(), trace.hidden_states[layer])
    assert found.error < 1e-5


def test_grouped_heads_with_the_norm_before(tmp_path, minilm) -> None:
    import regard

    make_tiny(tmp_path, minilm, "llama", num_attention_heads=6, num_key_value_heads=2, head_dim=4)
    trace = regard.load(tmp_path).trace("a river bank")
    found = block_steps(trace, 2, 1)
    assert (found.kind, found.normed, found.heads) == ("pre-norm", None, 6)
    for head in range(6):
        own = head_steps(trace, 2, 1, head).context
        torch.testing.assert_close(found.joined[head * 4 : (head + 1) * 4], own, atol=1e-5, rtol=0)
    assert found.error < 1e-5


def test_what_is_not_known_is_refused_with_the_reason(bank) -> None:
    without = replace(bank[0], attention_outputs=())
    found = block_steps(without, 5, 0)
    assert found.refused == "the trace does not hold what stands around it"
    assert found.projected is found.residual is found.total is found.normed is None
    with pytest.raises(RegardError, match=r"token 99 is out of range: the text has tokens|token 99 is out of range"):
        block_steps(bank[0], 99, 0)
    with pytest.raises(RegardError, match="does not hold the values of layer 0"):
        block_steps(replace(bank[0], values=(None,) * 6), 5, 0)


def test_a_projection_that_is_not_the_models_is_refused(bank) -> None:
    outputs = list(bank[0].attention_outputs)
    outputs[2] = replace(outputs[2], weight=outputs[2].weight * 1.5)
    with pytest.raises(RegardError, match=r"layer 2: W_O times the heads' contexts is .* from what the model computed"):
        block_steps(replace(bank[0], attention_outputs=tuple(outputs)), 5, 2)
