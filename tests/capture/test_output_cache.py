"""What a pass by known modules finds is what following every operation finds; what is otherwise is found out."""

from dataclasses import fields

import pytest
import torch
from torch import Tensor, nn

from regard.capture import output_cache
from regard.capture.output_cache import KnownOutput
from regard.models.model import Model
from regard.trace.attention_output import AttentionOutput
from regard.trace.trace import Trace
from tests.support.attention_outputs import make_model

IDS = [[5, 17, 31, 8, 44], [9, 2, 60, 41, 3]]
FAMILIES = [("bert", "post-norm"), ("distilbert", "post-norm"), ("gpt2", "pre-norm"), ("llama", "pre-norm")]


def opened(family: str) -> Model:
    return Model(make_model(family), None, name=family)


def assert_same_outputs(one: Trace, other: Trace) -> None:
    assert len(one.attention_outputs) == len(other.attention_outputs) == 2
    for mine, theirs in zip(one.attention_outputs, other.attention_outputs, strict=True):
        assert isinstance(mine, AttentionOutput)
        assert isinstance(theirs, AttentionOutput)
        for field in fields(AttentionOutput):
            a, b = getattr(mine, field.name), getattr(theirs, field.name)
            if isinstance(a, Tensor):
                assert torch.equal(a, b)
            elif field.name == "norm" and a is not None:
                assert torch.equal(a.weight, b.weight)
                assert torch.equal(a.bias, b.bias)
                assert a.eps == b.eps
            else:
                assert a == b


@pytest.mark.parametrize(("family", "kind"), FAMILIES)
def test_known_modules_give_what_following_gives(family: str, kind: str) -> None:
    model = opened(family)
    first, second = (model.trace(ids=IDS)[1] for _ in range(2))
    index = model._session.index
    assert index.outputs is not None
    assert [known.kind for known in index.outputs] == [kind] * 2
    third, other = model.trace(ids=IDS)[1], model.trace(ids=[IDS[1][:3]])[0]
    assert index.followed == 2  # the third and the fourth were not followed
    assert_same_outputs(first, second)
    assert_same_outputs(first, third)
    for mine, whole in zip(
        other.attention_outputs, opened(family).trace(ids=[IDS[1][:3]])[0].attention_outputs, strict=True
    ):
        assert torch.equal(mine.projected, whole.projected)


@pytest.mark.parametrize("family", ["albert", "gemma2", "phi", "marian"])
def test_what_modules_do_not_tell_is_followed_every_time(family: str) -> None:
    """Layers that are one module, factors before the residual, parallel blocks, cross-attention."""
    changes = {"num_key_value_heads": 2, "head_dim": 6} if family == "gemma2" else {}
    more = {"target_ids": IDS[0]} if family == "marian" else {}
    model = Model(make_model(family, **changes), None, name=family)
    for n in range(3):
        model.trace(ids=IDS[0], **more)
        assert model._session.index.followed == n + 1
    assert model._session.index.outputs == ()


def test_numbers_that_change_are_read_anew() -> None:
    model = opened("bert")
    for _ in range(3):
        model.trace(ids=IDS)
    dense = model.model.encoder.layer[1].attention.output.dense
    dense.weight = nn.Parameter(torch.randn(24, 24))
    known = model.trace(ids=IDS)[0]
    assert model._session.index.followed == 2
    assert torch.equal(known.attention_outputs[1].weight, dense.weight)
    assert_same_outputs(known, Model(model.model, None, name="bert").trace(ids=IDS)[0])


def test_a_replaced_module_is_followed_again() -> None:
    model = opened("bert")
    for _ in range(3):
        model.trace(ids=IDS)
    before = model._session.index
    model.model.encoder.layer[0].attention.output.dense = nn.Linear(24, 24)
    after = model.trace(ids=IDS)[0]
    assert model._session.index is not before
    assert model._session.index.followed == 1
    assert_same_outputs(after, Model(model.model, None, name="bert").trace(ids=IDS)[0])


def test_others_hooks_are_followed() -> None:
    model = opened("gpt2")
    for _ in range(3):
        model.trace(ids=IDS)
    index = model._session.index
    hook = model.model.h[1].attn.c_proj.register_forward_hook(lambda _m, _a, out: 2 * out)
    hooked = model.trace(ids=IDS)[0]
    hook.remove()
    assert index is model._session.index
    unknown = hooked.attention_outputs[1]  # what the hook makes of the projection is no known form, or is scaled
    assert not isinstance(unknown, AttentionOutput) or unknown.scaling is not None
    assert_same_outputs(model.trace(ids=IDS)[0], opened("gpt2").trace(ids=IDS)[0])


@pytest.mark.parametrize("wrong", ["reader", "projection", "too few"])
def test_what_goes_another_way_is_followed_after_all(wrong: str) -> None:
    model = opened("bert")
    first, _ = (model.trace(ids=IDS)[0] for _ in range(2))
    index = model._session.index
    one, two = index.outputs or ()
    layer = model.model.encoder.layer[1]
    changed = {
        "reader": (one, KnownOutput(two.projection, layer.output.LayerNorm, two.kind)),
        "projection": (one, KnownOutput(layer.output.dense, two.reader, two.kind)),
        "too few": (one,),
    }
    index.outputs = changed[wrong]
    assert_same_outputs(first, model.trace(ids=IDS)[0])
    assert index.outputs == ()
    assert_same_outputs(first, model.trace(ids=IDS)[0])
    assert output_cache.OTHERWISE not in str(first.status)


def test_a_projection_that_is_written_to_is_not_believed() -> None:
    """What is kept would not be what was added."""
    model = opened("bert")
    for _ in range(2):
        model.trace(ids=IDS)
    index = model._session.index
    watch = output_cache.KnownWatch(index)
    context, residual, projected = torch.ones(1, 2, 3, 8), torch.ones(1, 2, 24), torch.full((1, 2, 24), 2.0)
    for n in range(2):
        watch.follow(context, residual)
        watch.projected(n, torch.nn.Identity(), (context.reshape(1, 2, 24),), projected)
        watch.read(n, torch.nn.Identity(), (residual + projected,))
    assert all(isinstance(each, AttentionOutput) for each in watch.results())
    projected.add_(1)
    assert not any(isinstance(each, AttentionOutput) for each in watch.results())
    assert index.outputs == ()
