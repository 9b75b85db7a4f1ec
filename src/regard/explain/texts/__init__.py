"""A followed word and whole texts: its occurrences, what is most worth a look, and all that `regard see` shows."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.explain.texts import highlights as highlights
    from regard.explain.texts import occurrences as occurrences
    from regard.explain.texts import summary as summary

__getattr__, __dir__ = lazy_modules(__name__, __path__)
