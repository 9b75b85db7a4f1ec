"""Who attends to whom: rows of attention weights, heads by what they follow, sinks, words aligned across two texts."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.explain.weights import alignment as alignment
    from regard.explain.weights import attended as attended
    from regard.explain.weights import head_means as head_means
    from regard.explain.weights import head_scores as head_scores
    from regard.explain.weights import head_steps as head_steps
    from regard.explain.weights import sinks as sinks
    from regard.explain.weights import specific_weights as specific_weights

__getattr__, __dir__ = lazy_modules(__name__, __path__)
