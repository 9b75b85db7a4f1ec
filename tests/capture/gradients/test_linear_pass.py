"""Every tensor that a pass keeps linear is the sum of its leaves, each times its gradient; what is not is named."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from regard.capture.gradients.linear_pass import LinearPass
from regard.capture.interventions.names import CallId, CallNumbering
from regard.capture.state import Capture

IDS = torch.tensor([[3, 1, 4]])
TABLE, WIDE, NARROW = torch.randn(5, 7), torch.randn(11, 7), torch.randn(7, 11)
BIAS = torch.randn(7)


def made() -> LinearPass:
    """A pass that looks at layer 5 of some model."""
    capture = Capture(layer=("layers", 5))
    numbering = CallNumbering(torch.nn.Linear(1, 1), capture, pairs=False)
    return LinearPass([IDS], CallId(None, 0), numbering, capture)


def run(block: Any) -> tuple[LinearPass, torch.Tensor]:
    """The pass of a block of operations on looked-up embeddings, (1, 3, 7), and what it gives."""
    watched = made()
    with torch.no_grad(), watched:
        result = block(F.embedding(IDS, TABLE))
    return watched, result


def far(watched: LinearPass, result: torch.Tensor) -> float:
    """How far a component is from the sum of its leaves times their gradients."""
    leaves = [leaf.tensor for leaf in watched.leaves]
    component = result.flatten()[4]
    grads = torch.autograd.grad(component, leaves, allow_unused=True, retain_graph=True)
    total = sum(
        float((grad * leaf.detach()).sum()) for grad, leaf in zip(grads, leaves, strict=True) if grad is not None
    )
    return abs(total - float(component.detach()))


def kinds(watched: LinearPass) -> list[str]:
    return [leaf.kind for leaf in watched.leaves]


def rms(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def filled(x: torch.Tensor) -> torch.Tensor:
    whole = x.new_empty(1, 3, 14)
    whole[..., :7].copy_(2 * x)
    whole[..., 7:] = x
    return whole


def in_place(x: torch.Tensor) -> torch.Tensor:
    held = x.tanh()
    held += x  # other, and now linear
    x += BIAS
    x *= 2
    x.add_(held)
    x /= rms(x).pow(2).mean(-1, keepdim=True).sqrt()
    return x


LINEAR = {
    "in place": (in_place, ["token", "feed-forward", "bias"]),
    "norm": (lambda x: F.layer_norm(x, (7,), BIAS, BIAS), ["token", "bias"]),
    "norm by hand": (lambda x: BIAS * rms(x), ["token"]),
    "map": (lambda x: F.linear(x, WIDE, torch.ones(11)).view(1, 3, 11).transpose(1, 2), ["token", "bias"]),
    "Conv1D": (lambda x: torch.addmm(BIAS, x.view(3, 7), TABLE[:1].T @ TABLE[:1]), ["token", "bias"]),
    "Conv1D by names": (
        lambda x: torch.addmm(BIAS, mat1=x.view(3, 7), mat2=TABLE[:1].T @ TABLE[:1]),
        ["token", "bias"],
    ),
    "product by name": (lambda x: torch.matmul(x, other=WIDE.T), ["token"]),
    "feed-forward": (lambda x: x + F.linear(F.gelu(F.linear(x, WIDE)), NARROW), ["token", "feed-forward"]),
    "gated": (lambda x: x + F.linear(F.silu(x @ WIDE.T) * (x @ WIDE.T), NARROW), ["token", "feed-forward"]),
    "rotary": (lambda x: x[..., :6] * torch.ones(3, 6).cos() + torch.cat([-x[..., 3:6], x[..., :3]], -1), ["token"]),
    "constants": (lambda x: (x + 3.0 - BIAS) / 2, ["token", "bias", "bias"]),
    "written": (filled, ["token"]),
    "zeros": (lambda x: x.masked_fill(torch.tensor([True, False, False])[:, None], 0), ["token"]),
    "dropped": (lambda x: F.dropout(x, 0.5, training=False), ["token"]),
    "complex": (
        lambda x: torch.view_as_real(torch.view_as_complex(x[..., :6].contiguous().view(1, 3, 3, 2)) * 1j),
        ["token"],
    ),
}


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_tensor_is_the_sum_of_its_leaves(name: str) -> None:
    block, expected = LINEAR[name]
    watched, result = run(block)
    assert watched.is_linear(result)
    assert kinds(watched) == expected
    assert {leaf.layer for leaf in watched.leaves} == {5}
    assert far(watched, result) < 1e-5
    torch.testing.assert_close(result.detach(), block(F.embedding(IDS, TABLE)))  # the numbers are the plain ones
    assert watched.spoiled is None


OTHER = {
    "gelu": (F.gelu, "gelu"),
    "square": (lambda x: x * x, "mul"),
    "product": (lambda x: (x @ NARROW) * (x @ WIDE.T), "mul"),
    "gate": (lambda x: x * x.sigmoid(), "mul"),
    "quotient": (lambda x: 1 / x, "__rdiv__"),
    "dropping": (lambda x: F.dropout(x, 0.5, training=True), "dropout"),
    "joined with other": (lambda x: torch.cat([x, x.sigmoid()], -1), "cat"),
    "attention of its own": (lambda x: x @ x.transpose(1, 2), "matmul"),
}


@pytest.mark.parametrize("name", OTHER)
def test_what_is_not_linear_is_named(name: str) -> None:
    block, operation = OTHER[name]
    watched, result = run(block)
    assert not watched.is_linear(result)
    assert operation in (watched.reason(result) or "")


def test_what_other_numbers_were_written_into_is_no_constant() -> None:
    def block(x: torch.Tensor) -> torch.Tensor:
        whole = torch.zeros(1, 3, 7)
        whole[..., :4].copy_(x[..., :4].tanh())
        return whole

    watched, result = run(block)
    assert watched.reason(result) is not None  # else it would pass for a bias


def test_writing_into_the_stream_is_noticed() -> None:
    watched, _ = run(lambda x: (2 * x).tanh_())
    assert watched.spoiled == "tanh_"
