"""The fast path on CPUs: oneDNN products, with one Numba pass between them, and one worker thread per task.

`forward` computes output, row maxima and row sums. `statistics` computes those of the whole matrix. Both use `tiles`.
Modules are imported on first use, because Numba takes half a second to load.
"""

from typing import TYPE_CHECKING

from regard.lazy import lazy_names

if TYPE_CHECKING:
    from regard.attention.kernels.cpu import forward_statistics as forward_statistics
    from regard.attention.kernels.cpu import statistics as statistics
    from regard.attention.kernels.cpu import tiles as tiles
    from regard.attention.kernels.cpu import vector as vector

__getattr__, __dir__ = lazy_names(__name__)
