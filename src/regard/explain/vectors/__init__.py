"""Hidden states, embeddings and positions as vectors: how alike they are, and how a word moves from layer to layer."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.explain.vectors import neutral as neutral
    from regard.explain.vectors import planes as planes
    from regard.explain.vectors import similarity as similarity

__getattr__, __dir__ = lazy_modules(__name__, __path__)
