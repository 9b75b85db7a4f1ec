"""A causal model on thousands of tokens: sampled rows of a layer against the same model in float64."""

import copy

import pytest
import torch
import transformers
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import regard
from regard.capture.options import report_layers_of_pass

LENGTH = 4096


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=36, intermediate_size=53, num_hidden_layers=2, num_attention_heads=3,
        num_key_value_heads=1, max_position_embeddings=LENGTH, initializer_range=0.4,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def test_rows_of_a_long_text_are_exact(model) -> None:
    ids = torch.randint(97, (LENGTH,), generator=torch.Generator().manual_seed(1))
    done: list[float] = []
    opened = regard.load(model)
    with report_layers_of_pass(model, done.append):
        trace = opened.trace(ids=ids, layers=[1], logits=False)
    assert done == [0.5, 0.5]

    exact, seen = copy.deepcopy(model).double(), {}
    attention = exact.model.layers[1].self_attn
    attention.register_forward_pre_hook(lambda _module, _args, kwargs: seen.update(kwargs), with_kwargs=True)
    with torch.no_grad():
        last = exact.model(ids[None]).last_hidden_state[0]
        states = seen["hidden_states"]
        query = attention.q_proj(states).view(1, LENGTH, 3, 12).transpose(1, 2)
        key = attention.k_proj(states).view(1, LENGTH, 1, 12).transpose(1, 2)
        query, key = apply_rotary_pos_emb(query, key, *seen["position_embeddings"])
    rows = torch.tensor([0, 1, 2, 77, 1023, 1024, 2047, 3333, LENGTH - 1])
    scores = query[0, :, rows] @ key[0].mT * 12**-0.5  # (3, rows, L)
    scores = scores.masked_fill(torch.arange(LENGTH) > rows[:, None], -torch.inf)
    weights = scores.softmax(-1)
    torch.testing.assert_close(trace.attention[1][:, rows].double(), weights, atol=5e-5, rtol=0)
    torch.testing.assert_close(trace.last_hidden_state.double(), last, atol=1e-3, rtol=0)
    assert float(weights.amax()) > 0.2  # it does look at something
    values, keys = trace.attention[1].top(2)
    torch.testing.assert_close(values[:, rows].double(), weights.topk(2).values, atol=5e-5, rtol=0)
    assert torch.equal(keys[:, rows[1:], 0], weights[:, 1:].argmax(-1))
    assert trace.status.difference < 1e-5
