"""The layers of a transformer: attention, feed-forward, norms and residuals."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.masks import Mask
from regard.nn.config import TransformerConfig
from regard.nn.multihead import KeyValueCache, MultiHeadAttention
from regard.nn.positions import Alibi, Positions, Rotary

# Without gradients, hidden vectors are computed for this many positions at a time. For 100,000 positions, they would
# need more memory than everything else together.
LONGEST = 4_096

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),  # GPT-2's approximation (Hendrycks and Gimpel 2016)
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """A feed-forward layer, out(activation(up(x))) (Vaswani et al. 2017), or gated: out(activation(gate(x)) · up(x)).

    Gates: Shazeer 2020, "GLU Variants Improve Transformer". SwiGLU is gated "silu", GEGLU is gated "gelu".
    """

    def __init__(
        self, d_model: int, d_hidden: int, *, activation: str = "gelu", gated: bool = False, bias: bool = True
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            needed = " or ".join(map(repr, ACTIVATIONS))
            raise ValueError(f"activation: got {activation!r}, expected {needed}")
        self.activation = activation
        self.gate = nn.Linear(d_model, d_hidden, bias) if gated else None
        self.up = nn.Linear(d_model, d_hidden, bias)
        self.output = nn.Linear(d_hidden, d_model, bias)

    def extra_repr(self) -> str:
        """Return what print(module) shows."""
        return f"activation={self.activation!r}"

    def forward(self, x: Float[Tensor, "*B L M"]) -> Float[Tensor, "*B L M"]:
        """Compute each position's output vector, before the residual is added."""
        if x.shape[-2] <= LONGEST or torch.is_grad_enabled():
            return self.output(self._hidden(x))
        # Hooks on the output map need all positions at once. Without hooks, hidden vectors are computed in parts.
        watched = self.output._forward_hooks or self.output._forward_pre_hooks
        result = x.new_empty(*x.shape[:-1], self.up.out_features if watched else self.output.out_features)
        for part, into in zip(x.split(LONGEST, -2), result.split(LONGEST, -2), strict=True):
            into.copy_(self._hidden(part) if watched else self.output(self._hidden(part)))
        return self.output(result) if watched else result

    def _hidden(self, x: Float[Tensor, "*B l M"]) -> Float[Tensor, "*B l N"]:
        act = ACTIVATIONS[self.activation]
        return act(self.up(x)) if self.gate is None else act(self.gate(x)) * self.up(x)


def stack(config: TransformerConfig, name: str, *, causal: bool, crossing: bool) -> nn.ModuleList:
    """Build the layers of an encoder or decoder. They share one rotary or ALiBi module. name: prefix of their paths."""
    positions: Positions | None = None
    if config.positions == "rotary":
        positions = Rotary(config.head_width, config.rotary_base)
    elif config.positions == "alibi":
        positions = Alibi(config.heads, compact=causal)
    return nn.ModuleList(
        Layer(config, f"{name}.{n}", causal=causal, crossing=crossing, positions=positions)
        for n in range(config.layers)
    )


def norm_of(config: TransformerConfig) -> nn.Module:
    """Build a norm: layer norm (Ba et al. 2016) or root-mean-square norm (Zhang and Sennrich 2019)."""
    if config.norm == "rms":
        return nn.RMSNorm(config.d_model, config.norm_eps)
    return nn.LayerNorm(config.d_model, config.norm_eps, bias=config.bias)


class Layer(nn.Module):
    """A layer: self-attention, optional cross-attention, and feed-forward, each with norm and residual."""

    def __init__(
        self, config: TransformerConfig, path: str, *, causal: bool, crossing: bool, positions: Positions | None
    ) -> None:
        """path: of the module, for recording its calls. positions: positional encoding inside attention."""
        super().__init__()
        self.causal, self.norm_first = causal, config.norm_first
        attention = partial(
            MultiHeadAttention, d_model=config.d_model, heads=config.heads, key_heads=config.key_heads, d_k=config.d_k,
            bias=config.bias, dropout=config.attention_dropout,
        )  # fmt: skip
        self.attention = attention(positions=positions, path=f"{path}.attention")
        self.attention_norm = norm_of(config)
        self.cross = attention(path=f"{path}.cross") if crossing else None
        self.cross_norm = norm_of(config) if crossing else None
        self.feedforward = FeedForward(
            config.d_model, config.hidden_width, activation=config.activation, gated=config.gated, bias=config.bias
        )
        self.feedforward_norm = norm_of(config)
        self.dropout = nn.Dropout(config.dropout)

    def extra_repr(self) -> str:
        """Return what print(module) shows."""
        return f"causal={self.causal}, norm_first={self.norm_first}"

    def forward(
        self,
        x: Float[Tensor, "B L M"],
        context: Float[Tensor, "B S M"] | None = None,
        *,
        positions: Int[Tensor, "*b L"] | None = None,
        mask: Bool[Tensor, "..."] | Mask | None = None,
        context_mask: Bool[Tensor, "..."] | Mask | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "B L M"]:
        """Return the output states of the layer."""
        attend = partial(self.attention, mask=mask, causal=self.causal, positions=positions, cache=cache)
        x = self._add(x, attend, self.attention_norm)
        if self.cross is not None and self.cross_norm is not None:
            cross = partial(self.cross, context=context, mask=context_mask)
            x = self._add(x, cross, self.cross_norm)
        return self._add(x, self.feedforward, self.feedforward_norm)

    def _add(self, x: Tensor, part: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        """Add a sublayer's output to x, with a norm before the sublayer (pre-norm) or after the sum (post-norm)."""
        if self.norm_first:
            return x + self.dropout(part(norm(x)))
        return norm(x + self.dropout(part(x)))
