"""A layer's whole attention matrix, of a long text and of one read in windows; the matrix itself never exists."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.explain.matrices import band as band
    from regard.explain.matrices import distant_weights as distant_weights
    from regard.explain.matrices import offset_means as offset_means

__getattr__, __dir__ = lazy_modules(__name__, __path__)
