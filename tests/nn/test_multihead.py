"""Multi-head attention: by its formula, as torch's own module, with positions, and step by step with a cache."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import regard
from regard.nn import positions
from regard.nn.multihead import KeyValueCache, MultiHeadAttention
from tests.attention.cases import random


def by_formula(
    layer: MultiHeadAttention, x: torch.Tensor, context: torch.Tensor, allowed: torch.Tensor
) -> torch.Tensor:
    """One head after another, joined and projected."""
    share, heads = layer.heads // layer.key_heads, []
    query, key, value = layer.query(x), layer.key(context), layer.value(context)
    for head in range(layer.heads):
        group = head // share
        q = query[..., head * layer.d_k : (head + 1) * layer.d_k]
        k = key[..., group * layer.d_k : (group + 1) * layer.d_k]
        v = value[..., group * layer.d_v : (group + 1) * layer.d_v]
        scores = (q @ k.mT / layer.d_k**0.5).masked_fill(~allowed, -torch.inf)
        heads.append(scores.softmax(-1) @ v)
    return layer.output(torch.cat(heads, -1))


@pytest.mark.parametrize("heads", [(1, 1), (6, 6), (6, 2), (6, 1)])
@pytest.mark.parametrize("widths", [(None, None), (5, None), (3, 7)])
@pytest.mark.parametrize("bias", [False, True])
def test_by_formula(heads: tuple[int, int], widths: tuple[int | None, int | None], bias: bool) -> None:
    layer = MultiHeadAttention(
        d_model=12, heads=heads[0], key_heads=heads[1], d_k=widths[0], d_v=widths[1], bias=bias
    ).double()
    x = random(0, 2, 11, 12)
    torch.testing.assert_close(layer(x), by_formula(layer, x, x, torch.ones(11, 11).bool()))
    causal = torch.ones(11, 11).tril().bool()
    torch.testing.assert_close(layer(x, causal=True), by_formula(layer, x, x, causal))
    torch.testing.assert_close(layer(x, mask=causal), by_formula(layer, x, x, causal))
    window = causal & torch.ones(11, 11).triu(-3).bool()
    torch.testing.assert_close(layer(x, causal=True, window=(3, 0)), by_formula(layer, x, x, window))


def test_shapes_and_weights() -> None:
    layer, x = MultiHeadAttention(d_model=12, heads=6, key_heads=2, d_k=5, d_v=7), torch.randn(2, 11, 12)
    with regard.record() as calls:
        output, seen = layer(x, return_attention=True)
    assert output.shape == (2, 11, 12)
    assert seen.shape == (2, 6, 11, 11)
    assert calls["", 0].weights.key.shape == (2, 2, 11, 5)
    assert torch.equal(calls["", 0].weights.dense(), seen.dense())
    one, alone = layer(x[0], return_attention=True)
    torch.testing.assert_close(one, output[0])
    assert alone.shape == (6, 11, 11)
    layer(x).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


def test_context_of_its_own_width() -> None:
    layer = MultiHeadAttention(d_model=12, heads=3, d_context=5).double()
    x, context = random(0, 2, 7, 12), random(1, 2, 11, 5)
    output, seen = layer(x, context, return_attention=True)
    assert seen.shape == (2, 3, 7, 11)
    torch.testing.assert_close(output, by_formula(layer, x, context, torch.ones(7, 11).bool()))
    values = random(2, 2, 11, 5)  # keys of one input, values of another
    weighted = [seen.dense()[:, h] @ layer.value(values)[..., 4 * h : 4 * h + 4] for h in range(3)]
    torch.testing.assert_close(layer(x, context, values), layer.output(torch.cat(weighted, -1)))


def test_dropout_while_training_only() -> None:
    layer, x = MultiHeadAttention(d_model=12, heads=3, dropout=0.5), torch.randn(2, 11, 12)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def with_weights_of(module: nn.MultiheadAttention) -> MultiHeadAttention:
    """A layer with torch's weights."""
    layer = MultiHeadAttention(12, 3, d_context=module.kdim, bias=module.in_proj_bias is not None).double()
    joined = module.in_proj_weight
    separate = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    weights = dict(zip(("query", "key", "value"), separate if joined is None else joined.chunk(3), strict=True))
    state = {f"{name}.weight": weight for name, weight in weights.items()}
    if module.in_proj_bias is not None:
        state |= {f"{n}.bias": bias for n, bias in zip(weights, module.in_proj_bias.chunk(3), strict=True)}
    state |= {f"output.{name}": tensor for name, tensor in module.out_proj.named_parameters()}
    layer.load_state_dict(state)
    return layer


@settings(max_examples=40)
@given(st.booleans(), st.sampled_from((None, 5)), st.booleans(), st.sampled_from((None, "bool", "float")))
def test_as_torch_does_it(bias: bool, width: int | None, padded: bool, attn: str | None) -> None:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(12, 3, bias=bias, kdim=width, vdim=width, batch_first=True).double()
    x, context = random(0, 2, 5, 12), random(1, 2, 11, width or 12)
    hidden = random(5, 5, 11) > 0.5
    hidden[..., 2] = False  # torch gives NaN for what sees nothing
    attn_mask = None if attn is None else hidden if attn == "bool" else random(6, 5, 11)
    padding = torch.tensor([[False] * 11, [False] * 7 + [True] * 4]) if padded else None
    mask = ~hidden if attn == "bool" else None
    if padding is not None:
        exists = ~padding[:, None, None, :]
        mask = exists if mask is None else mask & exists
    bias_of_scores = attn_mask if attn == "float" else None
    output, seen = with_weights_of(module)(x, context, mask=mask, bias=bias_of_scores, return_attention=True)
    if padding is not None and attn == "float":
        padding = torch.where(padding, -torch.inf, 0.0).double()  # torch wants both masks of one kind
    right, weights = module(
        x, context, context, attn_mask=attn_mask, key_padding_mask=padding, average_attn_weights=False
    )
    torch.testing.assert_close(output, right, rtol=0, atol=1e-9)
    torch.testing.assert_close(seen.dense(), weights, rtol=0, atol=1e-9)


KINDS: dict[str, Any] = {
    "none": lambda: None,
    "rotary": lambda: positions.Rotary(4),
    "rotary interleaved": lambda: positions.Rotary(4, layout="interleaved"),
    "alibi": lambda: positions.Alibi(6),
    "alibi compact": lambda: positions.Alibi(6, compact=True),
}


def with_positions(kind: str) -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(d_model=12, heads=6, key_heads=2, d_k=5, positions=KINDS[kind]()).double().eval()


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "none"])
def test_positions_tell_order(kind: str) -> None:
    layer, x = with_positions(kind), random(0, 2, 7, 12)
    turned = layer(x.flip(1), causal=True).flip(1)
    assert (turned[:, 3] - layer(x, causal=True)[:, 3]).abs().max() > 1e-3
    plain = with_positions("none")
    assert (plain(x, causal=True) - layer(x, causal=True)).abs().max() > 1e-3
    torch.testing.assert_close(plain(x.flip(1)).flip(1), plain(x))


@pytest.mark.parametrize("kind", ["rotary", "rotary interleaved", "alibi", "alibi compact"])
def test_only_offsets_count(kind: str) -> None:
    layer, x = with_positions(kind), random(0, 2, 7, 12)
    moved = layer(x, causal=True, positions=torch.arange(100, 107))
    torch.testing.assert_close(moved, layer(x, causal=True), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_on_the_left_changes_nothing_where_positions_are_told(kind: str) -> None:
    layer, x = with_positions(kind), random(0, 2, 7, 12)
    keys = torch.tensor([[True] * 7, [False] * 3 + [True] * 4])
    own = (keys.cumsum(1) - 1).clamp(min=0)
    output = layer(x, causal=True, mask=regard.masks.padding(keys), positions=own)
    torch.testing.assert_close(output[1, 3:], layer(x[1, 3:], causal=True), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_step_by_step_is_all_at_once(kind: str, grad: bool, batched: bool) -> None:
    layer, x = with_positions(kind), random(0, 2, 29, 12)
    x = x if batched else x[0]
    whole, seen = layer(x, causal=True, window=(9, 0), return_attention=True)
    cache, outputs, start = KeyValueCache(), [], 0
    with torch.set_grad_enabled(grad), regard.record() as calls:
        for count in (5, 1, 1, 3, *(1,) * 19):
            rows = x[..., start : start + count, :]
            outputs.append(layer(rows, causal=True, window=(9, 0), cache=cache))
            start += count
            assert len(cache) == start
    torch.testing.assert_close(torch.cat(outputs, -2), whole, rtol=0, atol=1e-6)
    start = 0
    for call in calls.values():  # what was recorded early stays what it was
        length, size = call.weights.shape[-2:]
        expected = seen[..., start : start + length, :size]
        torch.testing.assert_close(call.weights.dense(), expected, rtol=0, atol=1e-6)
        start += length
    if grad:
        torch.cat(outputs, -2).sum().backward()
        got = layer.key.weight.grad.clone()
        layer.zero_grad()
        whole.sum().backward()
        torch.testing.assert_close(got, layer.key.weight.grad)


def test_a_cache_made_in_inference_mode_serves_out_of_it() -> None:
    layer, cache, x = MultiHeadAttention(d_model=8, heads=2), KeyValueCache(), torch.randn(1, 5, 8)
    with torch.inference_mode():
        layer(x[:, :3], causal=True, cache=cache)
    with torch.no_grad():
        last = layer(x[:, 3:], causal=True, cache=cache)
    torch.testing.assert_close(last, layer(x, causal=True)[:, 3:])


@pytest.mark.parametrize(
    ("changes", "error", "needed"),
    [
        ({"heads": 5}, ValueError, "d_k is needed, because d_model 12 isn't a multiple of 5 heads"),
        ({"heads": 0}, ValueError, "heads: got 0, expected 1 or more"),
        ({"heads": 6, "key_heads": 4}, ValueError, "key_heads: got 4, expected a number that divides the 6 heads"),
        ({"d_v": -1}, ValueError, "d_v: got -1, expected 1 or more"),
        ({"num_heads": 3}, ValueError, "MultiHeadAttention: unknown argument 'num_heads', did you mean 'heads'"),
        ({"dropout": 2.0}, ValueError, "dropout: got 2.0, expected a probability"),
    ],
)
def test_a_layer_that_cannot_be(changes: dict[str, Any], error: type[Exception], needed: str) -> None:
    with pytest.raises(error, match=needed):
        MultiHeadAttention(**{"d_model": 12, "heads": 3} | changes)


def test_a_call_that_does_not_fit() -> None:
    layer, x = MultiHeadAttention(d_model=12, heads=3), torch.zeros(2, 5, 12)
    with pytest.raises(ValueError, match="cache: works for self-attention only"):
        layer(x, x, cache=KeyValueCache())
    with pytest.raises(ValueError, match=r"x: got shape \(2, 5, 11\), expected \(batch, positions, 12\)"):
        layer(torch.zeros(2, 5, 11))
    with pytest.raises(ValueError, match=r"context: got shape \(3, 5, 12\), expected the same batch as x"):
        layer(x, torch.zeros(3, 5, 12))
    with pytest.raises(ValueError, match=r"positions: got shape \(4,\), expected \(5,\) or \(2, 5\)"):
        layer(x, positions=torch.arange(4))
    with pytest.raises(ValueError, match="causal: got False, expected True: the bias of these positions"):
        MultiHeadAttention(d_model=12, heads=3, positions=positions.Alibi(3, compact=True))(x)
    cache = KeyValueCache()
    layer(x, cache=cache)
    with pytest.raises(ValueError, match=r"cache: got key of shape \(1, 3, 5, 4\), expected \(2, 3, "):
        layer(x[:1], cache=cache)


@pytest.mark.parametrize("convention", ["x @ W", "W @ x"])
def test_a_layer_from_weights_is_the_heads_side_by_side(convention: str) -> None:
    query, key, value, output = (torch.randn(6, 8), torch.randn(6, 8), torch.randn(6, 10), torch.randn(10, 6))
    given = [each if convention == "x @ W" else each.mT for each in (query, key, value, output)]
    before = torch.get_rng_state()
    layer = MultiHeadAttention.from_weights(*given, heads=2, convention=convention)
    assert torch.equal(torch.get_rng_state(), before)
    x = torch.randn(5, 6)
    heads = [
        ((x @ query[:, q]) @ (x @ key[:, q]).mT / 4**0.5).softmax(-1) @ (x @ value[:, v])
        for q, v in ((slice(0, 4), slice(0, 5)), (slice(4, 8), slice(5, 10)))
    ]
    torch.testing.assert_close(layer(x), torch.cat(heads, -1) @ output)
    with pytest.raises(ValueError, match="heads: got 3, expected a divisor of 8 and 10"):
        MultiHeadAttention.from_weights(*given, heads=3, convention=convention)
    with pytest.raises(ValueError, match="output: got"):
        MultiHeadAttention.from_weights(*given[:3], given[0], heads=2, convention=convention)
