"""What stands around attention, found by following the numbers: checked against the models' own modules."""

import functools
import weakref
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode, _len_torch_function_stack

from regard.capture import output_path
from regard.capture.output_path import follow_context, follow_outputs
from regard.models.model import Model
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from tests.support.attention_outputs import make_model, watch

IDS = [[5, 17, 31, 8, 44], [9, 2, 60, 41, 3]]


def opened(family: str) -> Model:
    return Model(make_model(family), None, name=family)


def assert_same_outputs(one: Sequence[Any], other: Sequence[Any]) -> None:
    assert len(one) == len(other) == 2
    for mine, theirs in zip(one, other, strict=True):
        assert isinstance(mine, AttentionOutput)
        assert isinstance(theirs, AttentionOutput)
        for field in fields(AttentionOutput):
            a, b = getattr(mine, field.name), getattr(theirs, field.name)
            if isinstance(a, Tensor):
                assert torch.equal(a, b)
            elif field.name in ("norm", "scaling") and a is not None:
                assert type(a) is type(b)
                assert all(
                    torch.equal(x, y) if isinstance(x, Tensor) else x == y
                    for x, y in zip(vars(a).values(), vars(b).values(), strict=True)
                )
            else:
                assert a == b


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert", "gpt2", "llama", "gemma2", "phi", "gpt_neox"])
def test_following_to_the_end_of_a_layer_gives_what_following_the_pass_gives(family: str) -> None:
    changes = {"num_key_value_heads": 2, "head_dim": 6} if family == "gemma2" else {}
    model = make_model(family, **changes)
    _, whole, _ = watch(model, input_ids=torch.tensor([IDS[0]]))  # without layers, the whole pass is followed
    traced = Model(model, None, name=family).trace(ids=IDS[0])
    assert_same_outputs([output.crop(0, slice(0, 5)) for output in whole], traced.attention_outputs)


def test_operations_are_observed_from_the_attention_to_the_end_of_a_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    observe = output_path._Follower._operation

    def counted(self, func, name, args, kwargs):
        names.append(name)
        return observe(self, func, name, args, kwargs)

    monkeypatch.setattr(output_path._Follower, "_operation", counted)
    opened("bert").trace(ids=IDS)
    assert names.count("linear") == 2 * 3  # of two layers: the output projection and the feed-forward block's two


class Scaled(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **kwargs or {})
        return 1.5 * result if func is F.linear else result


def with_scaled_maps(forward, *args, **kwargs):
    with Scaled():
        return forward(*args, **kwargs)


@pytest.mark.parametrize("family", ["bert", "llama", "phi"])
def test_a_function_mode_within_a_layer_ends_where_its_block_ends(family: str) -> None:
    """If it outlived the block, the model's later maps would be scaled as well."""
    model = make_model(family)
    for module in model.modules():
        if type(module).__name__.endswith("Attention"):
            module.forward = functools.partial(with_scaled_maps, module.forward)
    with torch.no_grad():
        plain = model(torch.tensor(IDS))[0]
    with torch.device("cpu"):
        traces = Model(model, None, name=family).trace(ids=IDS)
        assert _len_torch_function_stack() == 1
    assert _len_torch_function_stack() == 0
    assert torch.allclose(torch.stack([trace.last_hidden_state for trace in traces]), plain, atol=1e-5)


def test_a_pass_that_fails_is_not_observed_any_longer() -> None:
    model = opened("bert")
    hook = model.model.encoder.layer[0].intermediate.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.trace(ids=IDS)
    assert _len_torch_function_stack() == 0
    hook.remove()
    assert_same_outputs(model.trace(ids=IDS)[0].attention_outputs, opened("bert").trace(ids=IDS)[0].attention_outputs)


TOKEN_IDS = torch.randint(1, 101, (2, 13), generator=torch.Generator().manual_seed(0))

POST = ["bert", "distilbert", "roberta", "albert", "electra"]
PRE = [
    ("gpt2", {}),
    ("llama", {"num_key_value_heads": 2}),
    ("qwen3", {"num_key_value_heads": 2, "head_dim": 6}),
    ("modernbert", {}),
    ("gpt_neox", {"use_parallel_residual": False}),
]


def outputs(model, names: list[str]) -> tuple[dict[str, list[torch.Tensor]], list]:
    """What the modules whose path ends in one of some names give, call by call."""
    kept: dict[str, list[torch.Tensor]] = {name: [] for name in names}
    handles = [
        module.register_forward_hook(
            lambda _m, _a, out, name=name: kept[name].append(out[0] if isinstance(out, tuple) else out)
        )
        for path, module in model.named_modules()
        for name in names
        if path.endswith(name)
    ]
    return kept, handles


@pytest.mark.parametrize("kind", POST)
def test_post_norm_blocks_are_found(kind: str) -> None:
    model = make_model(kind)
    calls, attention_outputs, output = watch(model, input_ids=TOKEN_IDS)
    assert len(attention_outputs) == len(calls) == 2
    parameters = {p.data_ptr() for p in model.parameters()}
    for n, block in enumerate(attention_outputs):
        assert isinstance(block, AttentionOutput)
        assert block.kind == "post-norm"
        assert {block.weight.data_ptr(), block.bias.data_ptr(), block.norm.weight.data_ptr()} <= parameters
        assert block.norm.eps == 1e-12
        assert torch.equal(block.residual, output.hidden_states[n])
        assert block.residual.data_ptr() == output.hidden_states[n].data_ptr()  # by reference: it costs nothing


@pytest.mark.parametrize(("kind", "changes"), PRE)
def test_pre_norm_blocks_are_found(kind: str, changes: dict) -> None:
    model = make_model(kind, **changes)
    calls, attention_outputs, output = watch(model, input_ids=TOKEN_IDS)
    assert [type(block) for block in attention_outputs] == [AttentionOutput] * len(calls)
    for n, (call, block) in enumerate(zip(calls, attention_outputs, strict=True)):
        assert block.kind == "pre-norm"
        assert block.norm is None
        assert torch.equal(block.residual, output.hidden_states[n])
        heads, width = call.weights.shape[1], call.value.shape[-1]
        assert block.weight.shape == (24, heads * width)


def test_the_weight_has_one_orientation() -> None:
    """GPT-2's Conv1D keeps the transpose of what nn.Linear keeps."""
    model = make_model("gpt2")
    _, attention_outputs, _ = watch(model, input_ids=TOKEN_IDS)
    assert torch.equal(attention_outputs[0].weight, model.h[0].attn.c_proj.weight.T)
    assert attention_outputs[0].weight.data_ptr() == model.h[0].attn.c_proj.weight.data_ptr()


def test_the_projection_and_the_block_are_the_modules_own() -> None:
    model = make_model("bert")
    kept, handles = outputs(model, ["attention.output.dense", "attention.output.LayerNorm"])
    _, attention_outputs, _ = watch(model, input_ids=TOKEN_IDS)
    for handle in handles:
        handle.remove()
    for block, projected, left in zip(attention_outputs, *kept.values(), strict=True):
        assert torch.equal(block.projected, projected)
        norm = block.norm
        ours = F.layer_norm(block.residual + block.projected, (24,), norm.weight, norm.bias, norm.eps)
        assert torch.equal(ours, left)


@pytest.mark.parametrize(("kind", "expected"), [("marian", "post-norm"), ("bart", "post-norm"), ("t5", "pre-norm")])
def test_encoder_decoders_have_a_block_for_every_call(kind: str, expected: str) -> None:
    """Also self-attention of a decoder, whose block ends where cross-attention's begins."""
    calls, attention_outputs, _ = watch(make_model(kind), input_ids=TOKEN_IDS, decoder_input_ids=TOKEN_IDS[:, :7])
    assert [block.kind for block in attention_outputs] == [expected] * 6
    lengths = [13, 13, 7, 7, 7, 7]
    assert [block.residual.shape[1] for block in attention_outputs] == lengths
    assert [call.weights.shape[3] for call in calls] == [13, 13, 7, 13, 7, 13]


@pytest.mark.parametrize(
    ("kind", "changes", "norm"),
    [
        ("gemma2", {"num_key_value_heads": 2, "head_dim": 6}, "post_attention_layernorm"),
        ("olmo2", {}, "post_attention_layernorm"),
        ("glm4", {"num_key_value_heads": 2, "head_dim": 4}, "post_self_attn_layernorm"),
        ("granite", {"residual_multiplier": 0.3}, None),
    ],
)
def test_norms_and_numbers_before_the_residual_are_found(kind: str, changes: dict, norm: str | None) -> None:
    model = make_model(kind, **changes)
    kept, handles = outputs(model, ["o_proj", *([norm] if norm else [])])
    _, attention_outputs, output = watch(model, input_ids=TOKEN_IDS)
    for handle in handles:
        handle.remove()
    assert len(attention_outputs) == 2
    for n, block in enumerate(attention_outputs):
        assert block.kind == "pre-norm"
        assert torch.equal(block.residual, output.hidden_states[n])
        assert torch.equal(block.projected, kept["o_proj"][n])
        expected = kept[norm][n] if norm else 0.3 * kept["o_proj"][n]
        assert torch.equal(block.added, expected)
        scaling = block.scaling
        torch.testing.assert_close(scaling.scale * scaling.gain * block.projected, expected, atol=1e-6, rtol=1e-6)
        assert scaling.scale.shape == (2, 13, 1)
        assert scaling.gain.shape == (24,)
        if norm:
            mean_square = block.projected.double().square().mean(-1, keepdim=True)
            expected_scale = (mean_square + model.config.rms_norm_eps).rsqrt()
            torch.testing.assert_close(scaling.scale.double(), expected_scale, atol=0, rtol=1e-6)
        own = block.crop(1, slice(2, 11))
        assert torch.equal(own.added, expected[1, 2:11])
        assert torch.equal(own.residual, output.hidden_states[n][1, 2:11])
        assert own.projected.data_ptr() == block.projected[1, 2:].data_ptr()  # by reference: it costs nothing
        assert torch.equal(own.scaling.scale, scaling.scale[1, 2:11])


@pytest.mark.parametrize(
    ("kind", "changes"),
    [("gpt_neox", {"use_parallel_residual": True}), ("phi", {}), ("cohere", {"num_key_value_heads": 2})],
)
def test_parallel_blocks_are_found(kind: str, changes: dict) -> None:
    model = make_model(kind, **changes)
    names = {"gpt_neox": "attention.dense", "phi": "self_attn.dense", "cohere": "o_proj"}
    kept, handles = outputs(model, [names[kind]])
    _, attention_outputs, output = watch(model, input_ids=TOKEN_IDS)
    for handle in handles:
        handle.remove()
    for n, block in enumerate(attention_outputs):
        assert block.kind == "parallel"
        assert torch.equal(block.residual, output.hidden_states[n])
        assert torch.equal(block.projected, kept[names[kind]][n])


@pytest.mark.parametrize(
    ("kind", "changes", "says"),
    [
        ("diffllama", {}, "DiffLlamaAttention: 'cat' is between the attention"),
        ("bitnet", {"num_key_value_heads": 2}, "BitNetAttention: 'pow' is between the attention"),
        ("qwen3_next", {"layer_types": ["full_attention"] * 2}, "Qwen3NextAttention: 'mul' is between the att"),
    ],
)
def test_other_shapes_are_noted_by_name_and_run_all_the_same(kind: str, changes: dict, says: str) -> None:
    model = make_model(kind, **changes)
    _, attention_outputs, output = watch(model, input_ids=TOKEN_IDS)
    assert attention_outputs
    for block in attention_outputs:
        assert isinstance(block, UnverifiedOutput)
        assert says in block.reason
    with torch.no_grad():
        torch.testing.assert_close(output[0], model(TOKEN_IDS)[0], atol=2e-5, rtol=0)


class Layer(nn.Module):
    """One layer whose shape a test chooses; attention is the mean of all tokens."""

    def __init__(self, forward) -> None:
        super().__init__()
        self.out, self.mlp, self.norm = nn.Linear(6, 6), nn.Linear(6, 6), nn.LayerNorm(6)
        self.way = forward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.clone()  # so that a way may write into it
        context = x.mean(1, keepdim=True).expand_as(x).unflatten(2, (2, 3)).contiguous()
        follow_context(context, self)
        return self.way(self, x, context.flatten(2))


def pre_norm(self, x, context):
    x = x + self.out(context)
    return x + self.mlp(self.norm(x))


def post_norm(self, x, context):
    x = self.norm(self.out(context) + x)
    return x + self.mlp(x)


def pre_norm_in_place(self, x, context):
    given = self.out(context)
    given += x
    return given + self.mlp(self.norm(given))


def residual_in_place(self, x, context):
    x += self.out(context)
    return x + self.mlp(self.norm(x))


def with_positions(self, x, context):
    """Pre-norm, though the normed states are added to something before the sum itself is."""
    x = x + self.out(context)
    return x + self.mlp(self.norm(x) + self.mlp.bias)


def post_norm_lets_go(self, x, context):
    """What is only followed is not kept alive: the sum's memory is free once its norm is the residual stream."""
    added = self.out(context) + x
    alive = weakref.ref(added)
    x = self.norm(added)
    del added
    x = x + self.mlp(x)
    assert alive() is None
    return x


def parallel(self, x, context):
    return x + self.out(context) + self.mlp(x)


def joined(self, x, context):
    return self.mlp(x) + self.out(context) + x


def joined_twice(self, x, context):
    """What joins the attention holds the residual already: what is added then is none."""
    return self.out(context) + (x + self.mlp(x)) + self.mlp(self.norm(x))


def scaled(self, x, context):
    x = x + self.out(context).double().to(torch.float32) / 4
    return x + self.mlp(self.norm(x))


def rms(self, x, context):
    given = self.out(context)
    x = given * (given * given).mean(-1, keepdim=True).rsqrt() * self.norm.weight + x
    return x + self.mlp(self.norm(x))


def torch_rms(self, x, context):
    x = F.rms_norm(self.out(context), (6,), self.norm.weight, 0.5) + x
    return x + self.mlp(self.norm(x))


def gated(self, x, context):
    x = x + self.out(context) * x.sigmoid()
    return x + self.mlp(self.norm(x))


def turned_over(self, x, context):
    x = x + 1 / self.out(context)
    return x + self.mlp(self.norm(x))


def beside(self, x, context):
    x = self.out(context) + self.mlp(x)
    return x + self.mlp(self.norm(x))


def two_norms(self, x, context):
    x = x + self.out(context)
    return self.mlp(x.tanh()) + self.norm(x)


def norm_and_more(self, x, context):
    added = x + self.out(context)
    x = self.norm(added)
    return x + self.mlp(x) + added.tanh()


def overwritten(self, x, context):
    given = self.out(context)
    y = x + given
    given.zero_()
    return y + self.mlp(self.norm(y))


def one_head_alone(self, x, context):
    return x + F.linear(context[..., :3], self.out.weight[:, :3])


def sum_of_halves(self, x, context):
    return x + torch.add(self.out(context), x, alpha=2)


def nothing(self, x, context):
    return x


def run(way) -> AttentionOutput | UnverifiedOutput:
    torch.manual_seed(0)
    layer, x = Layer(way), torch.randn(2, 5, 6)
    with torch.no_grad():
        expected = layer(x)
        with follow_outputs() as attention_outputs:
            assert torch.equal(layer(x), expected)
    (block,) = attention_outputs
    if isinstance(block, AttentionOutput):
        assert torch.equal(block.residual, x)
        projected = layer.out(x.mean(1, keepdim=True).expand_as(x))
        torch.testing.assert_close(block.projected, projected, atol=1e-6, rtol=0)
        if block.scaling is not None:
            scaling = block.scaling
            torch.testing.assert_close(scaling.scale * scaling.gain * projected, block.added, atol=1e-6, rtol=1e-5)
    return block


@pytest.mark.parametrize("way", [pre_norm, pre_norm_in_place, residual_in_place, with_positions])
def test_pre_norm_however_it_is_written(way) -> None:
    assert run(way).kind == "pre-norm"


@pytest.mark.parametrize("way", [parallel, joined])
def test_parallel_of_ones_own(way) -> None:
    assert run(way).kind == "parallel"


def test_what_projected_vectors_are_multiplied_by() -> None:
    assert run(scaled).scaling.scale.unique().tolist() == [0.25]
    for way, eps in ((rms, 0.0), (torch_rms, 0.5)):
        block = run(way)
        expected = (block.projected.square().mean(-1, keepdim=True) + eps).rsqrt()
        torch.testing.assert_close(block.scaling.scale, expected)
        assert torch.equal(block.scaling.gain, torch.ones(6))


def test_a_multiple_of_the_residual_was_there_before() -> None:
    layer, x = (
        Layer(lambda self, x, context: self.mlp(self.norm(y := 3 * x + self.out(context))) + y),
        torch.ones(2, 5, 6),
    )
    with torch.no_grad(), follow_outputs() as attention_outputs:
        layer(x)
    assert attention_outputs[0].kind == "pre-norm"
    assert torch.equal(attention_outputs[0].residual, 3 * x)


@pytest.mark.parametrize("way", [post_norm, post_norm_lets_go])
def test_post_norm_of_ones_own(way) -> None:
    assert run(way).kind == "post-norm"


@pytest.mark.parametrize(
    ("way", "says"),
    [
        (overwritten, "overwritten later"),
        (beside, "a parallel block, where something computed beside"),
        (joined_twice, "a parallel block, where something computed beside"),
        (gated, "'mul' is between the output projection"),
        (turned_over, "is between the output projection"),
        (two_norms, "neither of pre-norm nor of post-norm"),
        (norm_and_more, "neither of pre-norm nor of post-norm"),
        (one_head_alone, "'linear' is between"),
        (sum_of_halves, "'add' is between the output projection"),
        (nothing, "never used"),
    ],
)
def test_what_is_not_exact_is_not_taken(way, says: str) -> None:
    block = run(way)
    assert isinstance(block, UnverifiedOutput)
    assert block.reason.startswith("Layer: ")
    assert says in block.reason


def test_nothing_is_followed_outside() -> None:
    follow_context(torch.zeros(1, 2, 3, 4), nn.Identity())
    with follow_outputs() as attention_outputs:
        pass
    assert attention_outputs == []
