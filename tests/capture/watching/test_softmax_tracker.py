"""Attention that is written by hand is found with the weights that it computed; routers and classifiers are not."""

from collections.abc import Callable
from contextlib import suppress

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import regard
from regard.capture.watching.seen import WatchedCalls
from regard.errors import RegardError
from tests.support.handwritten import HANDWRITTEN, Mixture, NoAttention, Sinks, TalkingHeads, WithProjections

X = torch.linspace(-2, 2, 640).view(2, 10, 32).sin()


class Module(nn.Module):
    """Calls a function."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def watched(module: nn.Module, x: Tensor = X) -> WatchedCalls:
    with regard.watch(module) as seen:
        module(x)
    return seen


@pytest.mark.parametrize("made", HANDWRITTEN)
def test_calls_are_found_and_nothing_changes(made: type[WithProjections]) -> None:
    torch.manual_seed(0)
    module, results = made().train(), []
    for watching in (False, True):
        x = X.clone().requires_grad_()
        torch.manual_seed(3)
        if watching:
            with suppress(RegardError), regard.watch(module) as seen:
                out = module(x)
        else:
            out = module(x)
        out.sum().backward()
        results.append([out, x.grad, *(p.grad for p in module.parameters() if p.grad is not None)])
        module.zero_grad()
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert len(seen) == HANDWRITTEN[made]
    assert seen.unrecorded == {}
    if made not in (TalkingHeads, Sinks):
        assert all(float((call.weights[...].sum(-1) - 1).abs().max()) < 1e-6 for call in seen.values())


def test_weights_are_the_ones_that_were_computed() -> None:
    """To the bit and before dropout, with values and axes of the product."""
    computed = []

    def attention(x: Tensor) -> Tensor:
        q = x.view(2, 10, 4, 8).transpose(1, 2)
        weights = F.softmax((q @ q.mT).masked_fill(torch.ones(10, 10).tril() == 0, -torch.inf), -1)
        computed.append(weights.clone())
        return F.dropout(weights, 0.5, inplace=True).mul_(1.0).permute(1, 0, 2, 3) @ q.permute(1, 0, 2, 3)

    call = watched(Module(attention))["Module"]
    assert torch.equal(call.weights[...], computed[0].permute(1, 0, 2, 3))
    assert (call.kernel, call.weights.offset) == ("softmax(q·k)", 0)
    assert call.value is not None
    assert call.value.shape == (4, 2, 10, 8)


def test_mixed_heads_and_sinks_keep_their_sums() -> None:
    torch.manual_seed(0)
    assert 0.01 < float((1 - watched(Sinks())["Sinks"].weights[...].sum(-1)).max()) < 1
    module = TalkingHeads()
    q, k, _ = module.qkv(X)
    right = torch.einsum("bhij,hg->bgij", q @ k.mT, module.maps[3].weight[:4, :4]).softmax(-1)
    right = torch.einsum("bhij,hg->bgij", right, module.maps[3].weight[4:8, 4:8]).detach()
    torch.testing.assert_close(watched(module)["TalkingHeads"].weights[...], right)
    assert float(right.min()) < 0
    mixed = nn.Conv2d(4, 4, 1)

    def by_kernel(x: Tensor) -> Tensor:
        q = x.view(2, 10, 4, 8).transpose(1, 2)
        return mixed((q @ q.mT).softmax(-1)) @ q

    q = X.view(2, 10, 4, 8).transpose(1, 2)
    right = mixed((q @ q.mT).softmax(-1)).detach()
    torch.testing.assert_close(watched(Module(by_kernel))["Module"].weights[...], right)


def test_reasons_for_passing_over() -> None:
    for module in (Mixture(), NoAttention()):
        with pytest.raises(RegardError) as error:
            watched(module)
        lines = str(error.value).splitlines()
        assert any("a gate, a router or a classifier" in line for line in lines)
        assert any("it is no factor of a sum of vectors" in line for line in lines)
        assert all("handwritten.py:" in line for line in lines[1:-1])


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "views": lambda w: w.unsqueeze(1).expand(-1, 1, -1, -1).squeeze(1).transpose(1, 2).mT.contiguous(),
    "joined axes": lambda w: w.view(-1, w.shape[-1]).reshape(w.shape),
    "copied views": lambda w: w.permute(1, 0, 2).reshape(-1, w.shape[-1]).view(10, 2, 10).transpose(0, 1),
    "casts": lambda w: w.double().float().to(torch.float32).type_as(w),
    "a mask afterwards": lambda w: torch.where(w > 0.1, w, torch.zeros(())).masked_fill(w > 0.9, 0.5) * 2.0,
    "in place": lambda w: w.clone().mul_(0.5).add_(0.1),
    "split": lambda w: w.chunk(1, 1)[0],
    "divided by its sum": lambda w: w / w.sum(-1, keepdim=True),
    "log and exp": lambda w: w.log().log_softmax(-1).exp(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_done_to_weights_is_followed(name: str) -> None:
    seen = watched(Module(lambda x: CHANGES[name]((x @ x.mT).softmax(-1)) @ x))
    assert torch.equal(seen["Module"].weights[...], CHANGES[name]((X @ X.mT).softmax(-1)))


PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "bmm": torch.bmm,
    "baddbmm": lambda w, v: torch.baddbmm(torch.zeros(1, 1, 1), w, v),
    "einsum": lambda w, v: torch.einsum("b i j, b j d -> b i d", w, v),
    "einsum with dots": lambda w, v: torch.einsum("...ij,...jd->...id", [w, v]),
    "one query": lambda w, v: v[0].T @ w[0, 3],
    "terms": lambda w, v: (w.unsqueeze(-1) * v.unsqueeze(1)).sum(dim=[2]),
    "shared values": lambda w, v: torch.einsum("hij,jd->hid", w, v[0]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_way_to_multiply(name: str) -> None:
    right = (X @ X.mT).softmax(-1)
    weights = watched(Module(lambda x: PRODUCTS[name]((x @ x.mT).softmax(-1), x)))["Module"].weights
    torch.testing.assert_close(weights[...], right[0, 3:4] if name == "one query" else right)


def test_vmapped_modules() -> None:
    module = Module(lambda x: (x @ x.mT).softmax(-1) @ x)
    plain = torch.vmap(module)(X)
    with regard.watch(module) as seen:
        assert torch.equal(torch.vmap(module)(X), plain)
    torch.testing.assert_close(seen["Module"].weights[...], (X @ X.mT).softmax(-1))


def test_closed_kernels_are_named() -> None:
    library = torch.library.Library("regard_test", "DEF")
    library.define("flash_attn(Tensor q) -> Tensor")
    library.impl("flash_attn", lambda q: q.clone(), "CPU")
    with pytest.raises(RegardError, match="not seen: Module: flash_attn keeps its queries and keys to itself"):
        watched(Module(torch.ops.regard_test.flash_attn))
