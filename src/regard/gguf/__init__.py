"""Open GGUF files with `regard.load`, and keep quantised weights."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_names

if TYPE_CHECKING:  # imported on first use: it loads Numba and compiles its kernels
    from regard.gguf import quantised_blocks as quantised_blocks

__getattr__, __dir__ = lazy_names(__name__)
