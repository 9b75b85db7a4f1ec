"""What every kernel returns."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.attention.map_statistics import MapStatistics


class KernelResult(NamedTuple):
    """Output and softmax statistics of one attention call, and the name of the kernel that computed them.

    Where a query may attend to nothing, output is 0, and logsumexp is the sink's score, or -inf without a sink.
    row_max_sum: (row maximum, row sum), a weight is exp(score - maximum) / sum, sinks included; None where not kept.
    statistics: those that were asked for, None where none were.
    """

    output: Float[Tensor, "B H L E"]
    logsumexp: Float[Tensor, "B H L"]
    kernel: str
    row_max_sum: tuple[Float[Tensor, "B H L"], Float[Tensor, "B H L"]] | None = None
    statistics: MapStatistics | None = None
