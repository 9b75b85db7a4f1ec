"""What stands around one attention call: the output projection, the residual beside it and the norms behind it."""

from dataclasses import dataclass, replace
from typing import Literal

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Norm:
    """A layer norm (Ba et al. 2016): weight * (x - mean) / sqrt(variance + eps) + bias, by reference."""

    weight: Float[Tensor, " M"] | None
    bias: Float[Tensor, " M"] | None
    eps: float


@dataclass(frozen=True, eq=False)
class Scaling:
    """What projected vectors are multiplied by before they are added: added = scale * gain * projected.

    An RMS norm (Zhang & Sennrich 2019) is that: gain is its weight, scale each token's 1 / root mean square, as the
    model computed it. A constant (Granite's residual multiplier) is a scale as well. added: as the model computed it.
    """

    scale: Float[Tensor, "*B L 1"]
    gain: Float[Tensor, " M"]
    added: Float[Tensor, "*B L M"]


@dataclass(frozen=True, eq=False)
class AttentionOutput:
    """One attention call and what the model does with its context, as it was seen to happen.

    projected = context @ weight.T + bias, where context (.., H * E) holds the heads side by side; added is projected,
    or what scaling makes of it.
    "pre-norm" (Xiong et al. 2020): the block's output is residual + added. "post-norm" (Vaswani et al. 2017): it is
    norm(residual + added). "parallel" (Wang & Komatsuzaki 2021, GPT-J): the layer's output is residual + added + what
    something beside the attention gives. weight (W_O) and the norm are the model's own, by reference.
    """

    kind: Literal["post-norm", "pre-norm", "parallel"]
    weight: Float[Tensor, "M C"]
    bias: Float[Tensor, " M"] | None
    residual: Float[Tensor, "*B L M"]
    projected: Float[Tensor, "*B L M"]
    norm: Norm | None = None
    scaling: Scaling | None = None

    @property
    def added(self) -> Float[Tensor, "*B L M"]:
        """What the model adds to the residual."""
        return self.projected if self.scaling is None else self.scaling.added

    def crop(self, batch: int, rows: slice) -> "AttentionOutput":
        """The block of one text of a batch."""
        scaling = self.scaling
        if scaling is not None:
            scaling = replace(scaling, scale=scaling.scale[batch, rows], added=scaling.added[batch, rows])
        own = {name: getattr(self, name)[batch, rows] for name in ("residual", "projected")}
        return replace(self, **own, scaling=scaling)


@dataclass(frozen=True)
class UnverifiedOutput:
    """A block whose shape is not one of those that were verified. reason: what was seen there, for a person to read."""

    reason: str

    def crop(self, batch: int, rows: slice) -> "UnverifiedOutput":
        """Itself: the shape is the same for every text."""
        return self
