"""What made a hidden state what it is: contributions and layer updates, exactly; rollout; ablations, measured."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.explain.causes import ablation_effect as ablation_effect
    from regard.explain.causes import contributions as contributions
    from regard.explain.causes import layer_updates as layer_updates
    from regard.explain.causes import outcomes as outcomes
    from regard.explain.causes import score_writers as score_writers

__getattr__, __dir__ = lazy_modules(__name__, __path__)
