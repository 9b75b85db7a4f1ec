"""The feed-forward part of a layer: two linear maps with an activation between, at every position by itself."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

# Positions whose hidden vectors are computed at once where no gradients are wanted. Those of 100,000 positions take
# more than all else that is kept.
LONGEST = 4_096

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),  # as GPT-2 has it (Hendrycks and Gimpel 2016)
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """out(activation(up(x))) (Vaswani et al. 2017); gated: out(activation(gate(x)) · up(x)) (Shazeer 2020).

    Source of the gates: Shazeer 2020, "GLU Variants Improve Transformer": SwiGLU is "silu", GEGLU is "gelu".
    """

    def __init__(
        self, d_model: int, d_hidden: int, *, activation: str = "gelu", gated: bool = False, bias: bool = True
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            needed = " or ".join(map(repr, ACTIVATIONS))
            raise ValueError(f"activation: given {activation!r}, needs to be {needed}")
        self.activation = activation
        self.gate = nn.Linear(d_model, d_hidden, bias) if gated else None
        self.up = nn.Linear(d_model, d_hidden, bias)
        self.output = nn.Linear(d_hidden, d_model, bias)

    def extra_repr(self) -> str:
        """Return what print(module) shows."""
        return f"activation={self.activation!r}"

    def forward(self, x: Float[Tensor, "*B L M"]) -> Float[Tensor, "*B L M"]:
        """Return each position's new vector, before the residual is added."""
        if x.shape[-2] <= LONGEST or torch.is_grad_enabled():
            return self.output(self._hidden(x))
        # Who watches the output map sees all of it; else the hidden vectors of all positions are never there at once.
        watched = self.output._forward_hooks or self.output._forward_pre_hooks
        made = x.new_empty(*x.shape[:-1], self.up.out_features if watched else self.output.out_features)
        for part, into in zip(x.split(LONGEST, -2), made.split(LONGEST, -2), strict=True):
            into.copy_(self._hidden(part) if watched else self.output(self._hidden(part)))
        return self.output(made) if watched else made

    def _hidden(self, x: Float[Tensor, "*B l M"]) -> Float[Tensor, "*B l N"]:
        act = ACTIVATIONS[self.activation]
        return act(self.up(x)) if self.gate is None else act(self.gate(x)) * self.up(x)
