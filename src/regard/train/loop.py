"""Run the training loop. It accesses no files, except through a function that saves.

AdamW (Loshchilov and Hutter 2019) with warm-up and a cosine schedule (Loshchilov and Hutter 2017), gradient norm
clipping (Pascanu et al. 2013) and gradient accumulation.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import RegardError
from regard.nn.decoding import model_in_evaluation_mode
from regard.nn.transformer import Transformer
from regard.train.data import Batch, Data
from regard.train.run_folder import TrainingState
from regard.train.settings import Settings

REMEDY = "try a smaller rate (--resume --set rate=... goes on from the last checkpoint)"


class ProcessGroup:
    """The processes of distributed training. rank: this process's number, from 0. size: the number of processes."""

    def __init__(self, accelerator: Any) -> None:
        self._accelerator = accelerator
        self.rank, self.size = accelerator.process_index, accelerator.num_processes

    def wait(self) -> None:
        """Wait until all processes have reached this call."""
        self._accelerator.wait_for_everyone()

    def wrap(self, model: nn.Module) -> nn.Module:
        """Wrap a model so that each backward pass averages gradients over all processes."""
        return self._accelerator.prepare_model(model)

    def sum(self, number: float) -> float:
        """Return the sum of a number over all processes."""
        return float(self._accelerator.reduce(torch.tensor(number, dtype=torch.float64), "sum"))

    def any(self, flag: bool) -> bool:
        """Return whether any process was asked to stop."""
        return self.sum(float(flag)) > 0


@contextmanager
def process_group() -> Iterator[ProcessGroup | None]:
    """Join the processes started by `accelerate launch` or torchrun. Yields None for a single process."""
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


@dataclass(frozen=True)
class StepMetrics:
    """The loss, learning rate, number of tokens and duration of a training update.

    loss: in nats per token. validation: the held-out loss, None if it wasn't measured after this update.
    """

    step: int
    loss: float
    validation: float | None
    rate: float
    tokens: int
    seconds: float


def optimiser_of(model: nn.Module, settings: Settings) -> torch.optim.AdamW:
    """Return an AdamW optimizer for a model, with weight decay only for matrices."""
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decayed, "weight_decay": settings.decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        groups,
        lr=settings.rate,
        betas=(settings.beta1, settings.beta2),
        fused=all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in model.parameters()),
        eps=1e-8,
    )


def loss_of(model: Any, batch: Batch, settings: Settings, *, smoothing: float = 0.0) -> Float[Tensor, ""]:
    """Return the summed loss of a batch, in mixed precision if `settings` require it."""
    device = next(model.parameters()).device
    with torch.autocast(device.type, torch.bfloat16) if settings.dtype == "bfloat16" else nullcontext():
        return batch.loss(model, smoothing)


@torch.no_grad()
def validate(model: nn.Module, batches: Iterable[Batch], settings: Settings) -> float:
    """Return the mean validation loss in nats per token, without dropout."""
    total, tokens = 0.0, 0
    with model_in_evaluation_mode(model):
        for batch in batches:
            total += float(loss_of(model, batch, settings))
            tokens += batch.tokens
    return total / tokens


def train(
    model: Transformer,
    data: Data,
    optimiser: torch.optim.Optimizer,
    settings: Settings,
    state: TrainingState,
    *,
    save: Callable[[TrainingState], None],
    on_log: Callable[[StepMetrics], None],
    on_step_end: Callable[[int], None] = lambda step: None,
    stop: Callable[[], bool] = lambda: False,
    processes: ProcessGroup | None = None,
) -> TrainingState:
    """Train a model from a state until `settings.steps` updates are done or `stop` returns True."""
    compiled: Any = torch.compile(model) if settings.compile else model
    compiled = compiled if processes is None else processes.wrap(compiled)
    rank, size = (0, 1) if processes is None else (processes.rank, processes.size)
    model.train()
    while state.step < settings.steps:
        started, rate = time.perf_counter(), settings.learning_rate(state.step)
        for group in optimiser.param_groups:
            group["lr"] = rate
        batches, position = [], state.place
        for _ in range(settings.accumulate):
            batch, position = data.batch(position)
            batches.append(batch)
        tokens = sum(batch.tokens for batch in batches)
        optimiser.zero_grad(set_to_none=True)
        total = 0.0
        for batch in batches:
            loss = loss_of(compiled, batch.rows_of_process(rank, size), settings, smoothing=settings.smoothing)
            (loss * (size / tokens)).backward()  # · size, because gradients are averaged over processes
            total += float(loss.detach())
        total = total if processes is None else processes.sum(total)
        if not math.isfinite(total):
            _check_training_weights(model, state.step)
            _check_module_outputs(model, batches, settings, state.step)
            raise RegardError(f"step {state.step + 1}: the loss is {total}: {REMEDY}")
        if settings.clip:
            norm = nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            if not math.isfinite(float(norm)):
                _check_training_gradients(model, state.step)
        optimiser.step()
        state = replace(state, step=state.step + 1, place=position)
        last, stopping = state.step == settings.steps, stop() if processes is None else processes.any(stop())
        validation = None
        if last or training_step_due(state.step, settings.evaluate_every):
            validation = validate(model, data.validation(None if last else 20), settings)
            best = validation if state.best is None else min(state.best, validation)
            state = replace(state, best=best)
        on_log(StepMetrics(state.step, total / tokens, validation, rate, tokens, time.perf_counter() - started))
        if last or stopping or training_step_due(state.step, settings.save_every):
            _check_training_weights(model, state.step)
            save(state)
        on_step_end(state.step)
        if stopping:
            break
    return state


def training_step_due(step: int, interval: int) -> bool:
    """Return whether a step number is a multiple of `interval`. False if `interval` is 0."""
    return interval > 0 and step % interval == 0


@torch.no_grad()
def _check_module_outputs(model: nn.Module, batches: Iterable[Batch], settings: Settings, step: int) -> None:
    """Raise RegardError if a module has a non-finite output. It names the first such module."""
    not_finite: list[str] = []

    def hook_for(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _args: Any, output: Any) -> None:
            if isinstance(output, Tensor) and not bool(output.isfinite().all()):
                not_finite.append(name)

        return hook

    with ExitStack() as hooks:
        for name, module in model.named_modules():
            if name:
                hooks.enter_context(module.register_forward_hook(hook_for(name)))
        for batch in batches:
            loss_of(model, batch, settings)
    if not_finite:
        raise RegardError(f"step {step + 1}: the output of {not_finite[0]!r} isn't finite: {REMEDY}")


def _check_training_gradients(model: nn.Module, step: int) -> None:
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not bool(parameter.grad.isfinite().all()):
            raise RegardError(f"step {step + 1}: the gradient of {name!r} isn't finite: {REMEDY}")
    raise RegardError(f"step {step + 1}: the gradient is larger than any number: {REMEDY}")


def _check_training_weights(model: nn.Module, step: int) -> None:
    for name, parameter in model.named_parameters():
        if not bool(parameter.isfinite().all()):
            raise RegardError(f"step {step}: the tensor {name!r} isn't finite: {REMEDY}")
