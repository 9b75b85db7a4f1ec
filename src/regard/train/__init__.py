"""Train a transformer: settings, training data, training loop, checkpoints and watched sentences."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_names

if TYPE_CHECKING:
    from regard.train import data as data
    from regard.train import evolve as evolve
    from regard.train import follow as follow
    from regard.train import from_transformers as from_transformers
    from regard.train import loop as loop
    from regard.train import run as run
    from regard.train import run_files as run_files
    from regard.train import run_folder as run_folder
    from regard.train import settings as settings
    from regard.train import training as training
    from regard.train import verb as verb

__getattr__, __dir__ = lazy_names(__name__)
