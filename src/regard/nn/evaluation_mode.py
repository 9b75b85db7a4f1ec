"""Have a model compute as in use, without dropout, and leave its mode as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def model_in_evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Run every part of a model in evaluation mode inside the block; each part's own mode comes back after."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True
