"""Several processes that train together, through Hugging Face accelerate: each takes its rows of every batch."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from regard.errors import RegardError


class ProcessGroup:
    """One of several processes. rank: which one, from 0; size: how many."""

    def __init__(self, accelerator: Any) -> None:
        self._accelerator = accelerator
        self.rank, self.size = accelerator.process_index, accelerator.num_processes

    def wait(self) -> None:
        """Wait until all processes have come here."""
        self._accelerator.wait_for_everyone()

    def wrap(self, model: nn.Module) -> nn.Module:
        """Wrap a model so that gradients are averaged over all processes at each backward pass."""
        return self._accelerator.prepare_model(model)

    def sum(self, number: float) -> float:
        """Sum a number over all processes."""
        return float(self._accelerator.reduce(torch.tensor(number, dtype=torch.float64), "sum"))

    def any(self, asked: bool) -> bool:
        """Tell whether one of the processes was asked to stop."""
        return self.sum(float(asked)) > 0


@contextmanager
def process_group() -> Iterator[ProcessGroup | None]:
    """Join the processes that this one was started in (by `accelerate launch` or torchrun); None where it is alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield None
        return
    try:
        from accelerate import Accelerator
    except ImportError:
        raise RegardError("several processes need accelerate: pip install 'regard[distributed]'") from None
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    try:
        yield ProcessGroup(accelerator)
    finally:
        accelerator.end_training()
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
