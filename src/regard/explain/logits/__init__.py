"""What a language model predicts: its candidates for a place, layer by layer (logit lens)."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.explain.logits import logit_lens as logit_lens
    from regard.explain.logits import predictions as predictions

__getattr__, __dir__ = lazy_modules(__name__, __path__)
