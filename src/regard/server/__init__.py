"""Serve the interactive page on this machine. Texts typed in a browser are traced, and numbers sent on request."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_names

if TYPE_CHECKING:  # imported on first use: it loads Numba
    from regard.server import cell_mean_kernel as cell_mean_kernel

__getattr__, __dir__ = lazy_names(__name__)
