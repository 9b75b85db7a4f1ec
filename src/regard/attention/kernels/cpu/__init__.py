"""The fast path on CPUs: products by oneDNN, everything between them in one Numba pass, one worker thread per task.

`forward` computes output, row maxima and row sums; `statistics` those of the whole matrix. Both walk the same `tiles`.
A module is imported when it is first used: Numba takes half a second to load.
"""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.attention.kernels.cpu import cell_means as cell_means
    from regard.attention.kernels.cpu import forward_statistics as forward_statistics
    from regard.attention.kernels.cpu import statistics as statistics
    from regard.attention.kernels.cpu import tiles as tiles
    from regard.attention.kernels.cpu import vector as vector

__getattr__, __dir__ = lazy_modules(__name__, __path__)
