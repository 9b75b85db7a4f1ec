"""Heads and edges are ablated in any module, as float64 computes it; everything else stays as it is."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.attention.ablation import EdgeAblation, HeadAblation, ablating
from regard.errors import RegardError
from tests.capture.watching.test_watch import Module
from tests.support.handwritten import Coverage, NanoGPT, Sinks, SumOfTerms, TalkingHeads

X = torch.linspace(-3, 3, 640).view(2, 10, 32).sin()


class MultiHead(nn.MultiheadAttention):
    """Self-attention; need: whether the weights are asked for, which PyTorch then computes by hand."""

    def __init__(self, need: bool) -> None:
        super().__init__(32, 4, batch_first=True)
        self.need = need

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, x, x, need_weights=self.need)[0]


def heads_of(module: nn.Module) -> tuple[Tensor, Tensor, nn.Module]:
    """Return scores and values in float64, and the output map."""
    if isinstance(module, NanoGPT):
        q, k, v = (part.double() for part in module.qkv(X))
        mask = torch.ones(10, 10).tril() == 0
        return (q @ k.mT / 8**0.5).masked_fill(mask, -math.inf), v, module.maps[3]
    assert isinstance(module, MultiHead)
    projected = torch.nn.functional.linear(X, module.in_proj_weight, module.in_proj_bias).double()
    q, k, v = (t.view(2, 10, 4, 8).transpose(1, 2) for t in projected.chunk(3, -1))
    return q @ k.mT / 8**0.5, v, module.out_proj


@pytest.mark.parametrize("kind", ["need weights", "sdpa", "by hand"])
@pytest.mark.parametrize("what", ["head", "edges", "edge of all heads", "all edges of a query"])
@pytest.mark.parametrize("gradients", [True, False])
def test_ablations_against_float64(kind: str, what: str, gradients: bool) -> None:
    torch.manual_seed(0)
    module = (NanoGPT() if kind == "by hand" else MultiHead(kind == "need weights")).eval()
    path = type(module).__name__
    scores, values, output = heads_of(module)
    ablation: Any = {
        "head": regard.ablate(path, head=2),
        "edges": EdgeAblation(heads={1}, queries={3}, keys={0, 2}),
        "edge of all heads": regard.ablate(path, query=3, key=0),
        "all edges of a query": EdgeAblation(queries={3}),
    }[what]
    if what == "edges":
        scores[:, 1, 3, [0, 2]] = -math.inf
    elif what != "head":
        scores[:, :, 3, : 1 if "edge of" in what else 10] = -math.inf
    weights = scores.softmax(-1).nan_to_num(0)
    context = weights @ values
    if what == "head":
        context[:, 2] = 0
    right = output.double()(context.transpose(1, 2).reshape(2, 10, 32))
    output.float()
    x = X.clone().requires_grad_(gradients)
    with regard.watch(module, interventions=[ablation]) as seen:
        out = module(x)
    torch.testing.assert_close(out.double(), right, atol=1e-6, rtol=0)
    torch.testing.assert_close(seen[path].weights[...].double(), weights, atol=1e-6, rtol=0)
    assert seen[path].ablations == (ablation,)
    if gradients:
        out.sum().backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()


def test_calls_that_no_ablation_is_for_are_left_alone() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2).train()
    torch.manual_seed(5)
    plain = encoder.layers[0](X)
    torch.manual_seed(5)
    whole = encoder(X)
    kept: list[Tensor] = []
    encoder.layers[0].register_forward_hook(lambda *given: kept.append(given[-1]))
    for ablation in (regard.ablate("layers.1", head=0), regard.ablate(regard.head(1, 0))):
        torch.manual_seed(5)
        with regard.watch(encoder, interventions=[ablation]) as seen:
            assert not torch.equal(encoder(X), whole)
        assert torch.equal(kept.pop(), plain)  # with the same dropout
        assert [len(call.ablations) for call in seen.values()] == [0, 1]


def test_dropout_stays_when_edges_are_ablated_by_hand() -> None:
    torch.manual_seed(0)
    module, ablation = NanoGPT().train(), regard.ablate("NanoGPT", query=9, key=0)
    torch.manual_seed(1)
    plain = module(X)
    torch.manual_seed(1)
    with regard.watch(module, interventions=[ablation]) as seen:
        out = module(X)
    assert torch.equal(out[:, :9], plain[:, :9])
    assert not torch.equal(out[:, 9], plain[:, 9])
    torch.testing.assert_close(seen["NanoGPT"].weights[...].sum(-1), torch.ones(2, 4, 10))


def test_sinks_take_their_share_of_an_ablated_edge() -> None:
    torch.manual_seed(0)
    module = Sinks()
    with regard.watch(module) as plain:
        module(X)
    with regard.watch(module, interventions=[regard.ablate("Sinks", key=1)]) as seen:
        module(X)
    before = plain["Sinks"].weights[...]
    left = before.clone()
    left[..., 1] = 0
    torch.testing.assert_close(seen["Sinks"].weights[...], left / (1 - before[..., 1:2]))


def test_sums_of_terms_and_weights_that_are_used_twice() -> None:
    torch.manual_seed(0)
    pooling = SumOfTerms()
    with regard.watch(pooling, interventions=[regard.ablate("SumOfTerms", key=2)]) as seen:
        out = pooling(X)
    weights = seen["SumOfTerms"].weights[...]
    assert float(weights[..., 2].abs().max()) == 0
    torch.testing.assert_close(out, (weights @ X)[:, 0])
    module = Coverage()
    with regard.watch(module, interventions=[regard.ablate("Coverage")]) as seen:
        out = module(X)
    assert float(seen["Coverage"].weights[...].sum()) == pytest.approx(20)  # an ablated head still attends
    assert len(seen) == 1


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_cannot_be_ablated_is_an_error_after_the_block() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
    ran = []
    for intervention, error in [
        (regard.ablate("layers.7", head=0), "applied to no call; there were calls of layers.0.self_attn"),
        (regard.ablate("layers.1", head=4), "heads: got 4, expected numbers that the call 'layers.1.self_attn' has"),
        (regard.ablate(regard.edge("bank", "river")), "words are unknown here"),
        (regard.ablate(regard.head(0, 0, part="cross")), "pass the path of a module"),
        ("layers.1", "got str, expected regard.ablate"),
    ]:
        with pytest.raises(RegardError, match=error), regard.watch(encoder, interventions=[intervention]):  # type: ignore[list-item]
            encoder(X)
            ran.append(error)
    assert len(ran) == 2
    mixed, ablation = TalkingHeads(), regard.ablate("TalkingHeads", key=1)
    error = "TalkingHeads: its weights don't come from a softmax"
    with pytest.raises(RegardError, match=error), regard.watch(mixed, interventions=[ablation]):
        mixed(X)
    by_hand = Coverage()
    for module, path in ((mixed, "TalkingHeads"), (by_hand, "Coverage"), (Module(), "Module")):
        arguments = (X, X, X) if path == "Module" else (X[:, None],)
        error = f"{path}: calls of nested tensors and inside transforms of torch.func can be watched"
        ablation = regard.ablate(path, head=0)
        with pytest.raises(RegardError, match=error), regard.watch(module, interventions=[ablation]):
            torch.vmap(module)(*arguments)
    with pytest.raises(RegardError, match="ablate: pass head, query and key after a path"):
        regard.ablate(regard.head(0, 0), head=1)  # type: ignore[call-overload]


def test_modules_of_regard_are_ablated_by_path() -> None:
    model = nn.Sequential(nn.Linear(32, 32), regard.MultiHeadAttention(d_model=32, heads=4))
    with regard.watch(model, interventions=[regard.ablate("1", query=9, key=0)]) as seen:
        model(X)
    assert list(seen) == [("1", 0)]
    assert float(seen["1"].weights[:, :, 9, 0].abs().max()) == 0


def test_half_precision_of_autocast_stays() -> None:
    module, ablation = MultiHead(need=False), regard.ablate("MultiHead", head=1)
    with torch.autocast("cpu", torch.bfloat16), regard.watch(module, interventions=[ablation]) as seen:
        assert module(X).dtype == torch.bfloat16
    assert seen["MultiHead"].weights.query.dtype == torch.bfloat16


def test_open_blocks_count_too() -> None:
    module = Module()
    q = torch.randn(1, 2, 5, 4)
    with regard.watch(module), ablating([HeadAblation(heads={1}), HeadAblation(layers=[3])]) as block:
        assert float(module(q, q, q)[:, 1].abs().max()) == 0
    assert block.unmet == (HeadAblation(layers=[3]),)
