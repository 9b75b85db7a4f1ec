"""What stands around one attention call: the output projection, the residual beside it and the norm behind it."""

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
class Block:
    """One attention call and what the model does with its context, as it was seen to happen.

    projected = context @ weight.T + bias, where context (.., H * E) holds the heads side by side.
    "pre-norm" (Xiong et al. 2020): the block's output is residual + projected. "post-norm" (Vaswani et al. 2017): it is
    norm(residual + projected). weight (W_O) and the norm are the model's own, by reference.
    """

    kind: Literal["post-norm", "pre-norm"]
    weight: Float[Tensor, "M C"]
    bias: Float[Tensor, " M"] | None
    residual: Float[Tensor, "*B L M"]
    projected: Float[Tensor, "*B L M"]
    norm: Norm | None = None

    def crop(self, batch: int, rows: slice) -> "Block":
        """The block of one text of a batch: its rows are copied where they would keep the whole batch in memory."""
        own = [x[batch, rows] for x in (self.residual, self.projected)]
        if self.residual.shape[0] > 1:
            own = [x.clone() for x in own]
        return replace(self, residual=own[0], projected=own[1])


@dataclass(frozen=True)
class Unverified:
    """A block whose shape is not one of those that were verified. reason: what was seen there, for a person to read."""

    reason: str

    def crop(self, batch: int, rows: slice) -> "Unverified":
        """Itself: the shape is the same for every text."""
        return self
