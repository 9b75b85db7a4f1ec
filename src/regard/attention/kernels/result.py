"""What every kernel returns."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.attention.map_statistics import MapStatistics


class KernelResult(NamedTuple):
    """Output and softmax statistics of one attention call, and the name of the kernel that computed them.

    Where a query may attend to nothing, output is 0, and logsumexp is the sink's score, or -inf without a sink.
    row_max, row_sum: a weight is exp(score - row_max) / row_sum, sinks included; None where they were not kept.
    statistics: those that were asked for, None where none were.
    """

    output: Float[Tensor, "B H L E"]
    logsumexp: Float[Tensor, "B H L"]
    kernel: str
    row_max: Float[Tensor, "B H L"] | None = None
    row_sum: Float[Tensor, "B H L"] | None = None
    statistics: MapStatistics | None = None

    @property
    def row_max_sum(self) -> tuple[Float[Tensor, "B H L"], Float[Tensor, "B H L"]] | None:
        """(row_max, row_sum), None where the kernel has not kept them."""
        return None if self.row_max is None or self.row_sum is None else (self.row_max, self.row_sum)
