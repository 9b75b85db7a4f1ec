"""Describe the path of an attention call's context to the residual stream: projection, scaling, residual, norm."""

from dataclasses import dataclass, replace
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from regard.shown import short_repr


@dataclass(frozen=True, eq=False)
class Norm:
    """A layer norm (Ba et al. 2016), weight * (x - mean) / sqrt(variance + eps) + bias, with the model's tensors."""

    weight: Float[Tensor, " M"] | None
    bias: Float[Tensor, " M"] | None
    eps: float


@dataclass(frozen=True, eq=False)
class Scaling:
    """Factors of projected vectors before the residual addition: added = scale * gain * projected.

    For an RMS norm (Zhang & Sennrich 2019), gain is its weight and scale is each token's 1 / root mean square, as the
    model computed it. A constant (Granite's residual multiplier) is also a scale. added: as the model computed it.
    """

    scale: Float[Tensor, "*B L 1"]
    gain: Float[Tensor, " M"]
    added: Float[Tensor, "*B L M"]


@dataclass(frozen=True, eq=False)
class AttentionOutput:
    """The captured and verified path from an attention call's context to the residual stream.

    projected = context @ weight.T + bias, where context (.., H * E) is all heads side by side. added is projected, or
    scaling.scale * scaling.gain * projected. The next step depends on the kind:
    "pre-norm" (Xiong et al. 2020): residual + added;
    "post-norm" (Vaswani et al. 2017): norm(residual + added);
    "parallel" (Wang & Komatsuzaki 2021, GPT-J): residual + added + the output of a module parallel to attention.
    weight (W_O), bias and the norm are the model's own tensors.
    """

    kind: Literal["post-norm", "pre-norm", "parallel"]
    weight: Float[Tensor, "M C"]
    bias: Float[Tensor, " M"] | None
    residual: Float[Tensor, "*B L M"]
    projected: Float[Tensor, "*B L M"]
    norm: Norm | None = None
    scaling: Scaling | None = None
    __repr__ = short_repr

    @property
    def added(self) -> Float[Tensor, "*B L M"]:
        """The addition to the residual: the projected context, scaled if the model scales it."""
        return self.projected if self.scaling is None else self.scaling.added

    def crop(self, batch: int, rows: slice) -> "AttentionOutput":
        """Return the attention output of one text of a batch, without padding."""
        scaling = self.scaling
        if scaling is not None:
            scaling = replace(scaling, scale=scaling.scale[batch, rows], added=scaling.added[batch, rows])
        residual, projected = self.residual[batch, rows], self.projected[batch, rows]
        return replace(self, residual=residual, projected=projected, scaling=scaling)


@dataclass(frozen=True)
class UnverifiedOutput:
    """An attention output whose kind could not be verified. reason: a sentence with the reason."""

    reason: str

    def crop(self, batch: int, rows: slice) -> "UnverifiedOutput":
        """Return the object itself, because the reason is the same for all texts of a batch."""
        return self
