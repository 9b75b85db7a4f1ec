"""Attention outputs: what is added to the residual, and one text of a batch."""

from typing import Any

import pytest
import torch

from regard.trace.attention_output import AttentionOutput, Norm, Scaling, UnverifiedOutput

B, L, M, C = 2, 5, 7, 11


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def made(scaling: Scaling | None = None) -> AttentionOutput:
    norm = Norm(random(M), None, 1e-5)
    return AttentionOutput("post-norm", random(M, C), None, random(B, L, M, seed=1), random(B, L, M), norm, scaling)


def scaled() -> Scaling:
    scale, gain, projected = random(B, L, 1, seed=2), random(M, seed=3), random(B, L, M)
    return Scaling(scale, gain, scale * gain * projected)


@pytest.mark.parametrize("scaling", [None, scaled()])
@pytest.mark.parametrize(("batch", "rows"), [(0, slice(0, 3)), (1, slice(2, 5))])
def test_one_text_of_a_batch(scaling: Any, batch: int, rows: slice) -> None:
    whole = made(scaling)
    one = whole.crop(batch, rows)
    assert torch.equal(one.residual, whole.residual[batch, rows])
    assert torch.equal(one.projected, whole.projected[batch, rows])
    assert torch.equal(one.added, whole.added[batch, rows])
    assert one.weight is whole.weight  # the model's own
    assert one.norm is whole.norm
    assert (one.scaling is None) == (scaling is None)


def test_what_is_added() -> None:
    plain = made()
    assert plain.added is plain.projected
    output = made(scaled())
    assert output.scaling is not None
    torch.testing.assert_close(output.added, output.scaling.scale * output.scaling.gain * output.projected)
    assert not torch.equal(output.added, output.projected)


def test_what_is_not_verified_is_so_for_every_text() -> None:
    output = UnverifiedOutput("a gate stands between")
    assert output.crop(1, slice(0, 2)) is output
