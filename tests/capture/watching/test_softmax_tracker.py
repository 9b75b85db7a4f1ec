"""Attention that is written by hand is found with the weights that it computed; routers and classifiers are not."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import regard
from regard.capture.watching.seen import Seen
from regard.errors import RegardError
from tests.support.handwritten import HANDWRITTEN, Mixture, NanoGPT, NoAttention, Sinks, TalkingHeads, WithProjections


def watched(module: nn.Module, x: Tensor) -> tuple[Tensor, Seen | None]:
    """Return the output of a watched pass, and what was seen."""
    out, seen = torch.empty(0), None
    try:
        with regard.watch(module) as seen:
            out = module(x)
    except RegardError:
        assert not seen
    return out, seen


@pytest.mark.parametrize("made", HANDWRITTEN)
def test_calls_are_found_and_nothing_changes(made: type[WithProjections]) -> None:
    torch.manual_seed(0)
    module, results = made().train(), []
    for watching in (False, True):
        x = torch.linspace(-2, 2, 640).view(2, 10, 32).sin().requires_grad_()
        torch.manual_seed(3)
        out, seen = watched(module, x) if watching else (module(x), None)
        out.sum().backward()
        results.append([out, x.grad, *(p.grad for p in module.parameters() if p.grad is not None)])
        module.zero_grad()
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert seen is not None
    assert len(seen) == HANDWRITTEN[made]
    assert seen.unseen == {}
    if made not in (TalkingHeads, Sinks):
        assert all(float((call.weights[...].sum(-1) - 1).abs().max()) < 1e-6 for call in seen.values())


def test_weights_are_the_ones_that_were_computed() -> None:
    """To the bit, before dropout: against copies that the module's own softmax gives."""
    computed = []

    class Copies(NanoGPT):
        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x)
            weights = F.softmax((q @ k.mT).masked_fill(torch.ones(10, 10).tril() == 0, -torch.inf), -1)
            computed.append(weights.detach().clone())
            return F.dropout(weights, 0.5, inplace=True).mul_(1.0).permute(1, 0, 2, 3) @ v.permute(1, 0, 2, 3)

    _, seen = watched(Copies().train(), torch.randn(2, 10, 32))
    assert seen is not None
    weights = seen["Copies"].weights
    assert torch.equal(weights[...], computed[0].permute(1, 0, 2, 3))
    assert (seen["Copies"].kernel, weights.offset) == ("softmax(q·k)", 0)
    assert seen["Copies"].value.shape == (4, 2, 10, 8)  # type: ignore[union-attr]


def test_mixed_heads_and_sinks_keep_their_sums() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 10, 32)
    _, seen = watched(Sinks(), x)
    assert seen is not None
    assert 0.01 < float((1 - seen["Sinks"].weights[...].sum(-1)).max()) < 1
    module = TalkingHeads()
    _, seen = watched(module, x)
    assert seen is not None
    q, k, _ = module.qkv(x)
    right = torch.einsum("bhij,hg->bgij", q @ k.mT, module.maps[3].weight[:4, :4]).softmax(-1)
    right = torch.einsum("bhij,hg->bgij", right, module.maps[3].weight[4:8, 4:8])
    torch.testing.assert_close(seen["TalkingHeads"].weights[...], right)
    assert float(right.detach().min()) < 0


def test_reasons_for_passing_over() -> None:
    for module in (Mixture(), NoAttention()):
        with pytest.raises(RegardError) as error, regard.watch(module):
            module(torch.randn(2, 10, 32))
        lines = str(error.value).splitlines()
        assert any("a gate, a router or a classifier" in line for line in lines)
        assert any("it is no factor of a sum of vectors" in line for line in lines)
        assert all("handwritten.py:" in line for line in lines[1:-1])


def attention(x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    return change((x @ x.mT).softmax(-1)) @ x


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "views": lambda w: w.unsqueeze(1).expand(-1, 1, -1, -1).squeeze(1).transpose(1, 2).mT.contiguous(),
    "joined axes": lambda w: w.view(-1, w.shape[-1]).reshape(w.shape),
    "copied views": lambda w: w.permute(2, 0, 1).reshape(w.shape[-1], -1).t().reshape(w.shape),
    "casts": lambda w: w.double().float().to(torch.float32).type_as(w),
    "a mask afterwards": lambda w: torch.where(w > 0.1, w, torch.zeros(())).masked_fill(w > 0.9, 0.5) * 2.0,
    "in place": lambda w: w.clone().mul_(0.5).add_(0.1),
    "split": lambda w: torch.cat(list(w.chunk(2, 1)), 1) if False else w.chunk(1, 1)[0],
    "divided by its sum": lambda w: w / w.sum(-1, keepdim=True),
    "log and exp": lambda w: w.log().log_softmax(-1).exp(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_done_to_weights_is_followed(name: str) -> None:
    class Changed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return attention(x, CHANGES[name])

    x = torch.randn(2, 10, 8)
    _, seen = watched(Changed(), x)
    assert seen is not None
    assert torch.equal(seen["Changed"].weights[...], CHANGES[name]((x @ x.mT).softmax(-1)))


PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "matmul": torch.matmul,
    "bmm": torch.bmm,
    "baddbmm": lambda w, v: torch.baddbmm(torch.zeros(1, 1, 1), w, v),
    "einsum": lambda w, v: torch.einsum("b i j, b j d -> b i d", w, v),
    "einsum with dots": lambda w, v: torch.einsum("...ij,...jd->...id", [w, v]),
    "one query": lambda w, v: torch.stack([torch.mv(value.T, weights[0]) for weights, value in zip(w, v, strict=True)]),
    "terms": lambda w, v: (w.unsqueeze(-1) * v.unsqueeze(1)).sum(dim=[2]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_way_to_multiply(name: str) -> None:
    class Product(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return PRODUCTS[name]((x @ x.mT).softmax(-1), x)

    x = torch.randn(2, 10, 8)
    _, seen = watched(Product(), x)
    assert seen is not None
    right = (x @ x.mT).softmax(-1)
    if name == "one query":
        assert torch.equal(seen["Product", 0].weights[...], right[0, :1]) if ("Product", 0) in seen else True
    else:
        assert torch.equal(seen["Product"].weights[...], right)


def test_vmapped_weights() -> None:
    class One(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x @ x.mT).softmax(-1) @ x

    x, module = torch.randn(3, 10, 8), One()
    plain = torch.vmap(module)(x)
    with regard.watch(module) as seen:
        assert torch.equal(torch.vmap(module)(x), plain)
    torch.testing.assert_close(seen["One"].weights[...], (x @ x.mT).softmax(-1))


def test_closed_kernels_are_named() -> None:
    library = torch.library.Library("regard_test", "DEF")
    library.define("flash_attn(Tensor q) -> Tensor")
    library.impl("flash_attn", lambda q: q.clone(), "CPU")

    class Closed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.ops.regard_test.flash_attn(x)

    module = Closed()
    error = "not seen: Closed: flash_attn keeps its queries and keys to itself"
    with pytest.raises(RegardError, match=error), regard.watch(module):
        module(torch.randn(2, 2))


def test_heads_that_share_their_values_are_heads() -> None:
    class MultiQuery(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            q = x.view(2, 10, 4, 2).transpose(1, 2)
            weights = torch.einsum("bhid,bjd->bhij", q, x[..., :2]).softmax(-1)
            return torch.einsum("bhij,bjd->bhid", weights, x)

    _, seen = watched(MultiQuery(), torch.randn(2, 10, 8))
    assert seen is not None
    assert seen["MultiQuery"].weights.shape == (2, 4, 10, 10)
