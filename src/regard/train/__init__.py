"""Training a transformer of one's own: settings, data, loop, checkpoints, and what is watched on the way."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.train import run as run
    from regard.train import settings as settings

__getattr__, __dir__ = lazy_modules(__name__, __path__)
