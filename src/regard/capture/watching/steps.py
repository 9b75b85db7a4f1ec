"""Watch every n-th step of a training loop, and log statistics of each head.

Between these steps the module has two hooks that count, and nothing else. A step ends when the weights change: passes
whose gradients are accumulated belong to one step.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from warnings import warn

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import register_optimizer_step_post_hook

from regard.attention.map_statistics import Statistics
from regard.attention.recording import Call
from regard.capture.watching.seen import WatchedCalls
from regard.capture.watching.torch_internals import in_backward_pass
from regard.errors import RegardError
from regard.files import plain_json_values

STATISTICS = ("entropy", "largest_weight", "distance", "first_token")
SWEEP = Statistics.only(top=1, entropy=True, received=True, distance=True)


class StepLogger:
    """Opens a block around the first training pass of every n-th step, and logs the calls that `add` was given."""

    def __init__(self, module: nn.Module, every: int, log: Any) -> None:
        self.module, self.every, self.step = module, every, -1
        self._log = None if log is None else log_function(log)
        self._parameters = {id(p): p for p in module.parameters() if not (is_lazy(p) or p.is_inference())}
        self._frozen = not any(p.requires_grad for p in self._parameters.values())
        self._updated, self._versions, self._watched, self._warned = True, 0, -1, False
        self._passes: list[AbstractContextManager[None] | None] = []  # that run now, outermost first
        self._calls: list[tuple[str, Tensor]] = []

    def __reduce__(self) -> Any:
        return StepLogger, (nn.Identity(), 1, None)  # the hooks of a copied or saved module do nothing

    @contextmanager
    def watching(self, block: Callable[[], AbstractContextManager[None]], seen: WatchedCalls) -> Iterator[None]:
        """Enter the block around each pass to watch. seen: its calls, if there is no log."""
        self._block, self._seen = block, seen
        hooks = [
            self.module.register_forward_pre_hook(self._before, prepend=True),
            self.module.register_forward_hook(self._after, always_call=True),
            register_optimizer_step_post_hook(self._after_update),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
            while self._passes:  # of a pass that Ctrl-C ended
                self._end()
        self._warn_of_no_pass()

    def _before(self, module: nn.Module, _: Any) -> None:
        if torch.compiler.is_compiling():  # dynamo traces the hooks, but not what they open
            return
        trains = module is self.module and module.training and torch.is_grad_enabled() and not in_backward_pass()
        trains = trains and not any(self._passes)
        self._passes.append(None)
        if trains:
            versions = sum(parameter._version for parameter in self._parameters.values())
            self.step += self._updated or versions != self._versions
            self._updated, self._versions = False, versions
            if self.step % self.every == 0 and self.step != self._watched:
                self._calls.clear()
                self._passes[-1] = block = self._block()
                block.__enter__()

    def _after(self, _: nn.Module, __: Any, output: Any) -> None:
        if torch.compiler.is_compiling() or not self._passes or not self._end():
            return
        if output is None and sys.exc_info()[0] is not None:  # it failed
            return
        rows, paths = list[dict[str, Any]](), list[str]()
        for path, means in self._calls:
            for n, head in enumerate(plain_json_values(means.T)):
                row = {"path": path, "call": paths.count(path), "head": n if means.shape[1] > 1 else None}
                rows.append(row | dict(zip(STATISTICS, head, strict=True)))
            paths.append(path)
        self._calls.clear()
        if self._watched < 0 and not (rows or self._seen):
            raise self._seen.nothing_seen()
        self._watched = self.step
        if self._log is not None:
            self._log(self.step, rows)

    def _after_update(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Note an update. Kernels that get pointers leave the versions of tensors as they were."""
        if any(id(p) in self._parameters for group in optimizer.param_groups for p in group["params"]):
            self._updated = True
            self._warn_of_no_pass()
        self._updated |= self._frozen  # something else is trained

    def _warn_of_no_pass(self) -> None:
        if self.step < 0 and not self._warned:
            self._warned = True
            says = "made no pass in training mode with gradients on. Pass the compiled module if you use torch.compile"
            warn(f"regard.watch: the module that it was given {says}", stacklevel=2)

    def add(self, call: Call) -> None:
        """Reduce a call to means over texts and queries, for each head. Queries that attend to nothing don't count."""
        weights = call.weights
        batch, heads, length, _ = weights.full_shape
        batch, heads = (batch, heads) if weights.ndim == 4 else (batch * heads, 1)  # else it may be either
        with torch.no_grad(), torch.autocast(weights.device.type, enabled=False):
            weights.keep_statistics(SWEEP)
            entropy, (largest, keys) = weights.entropy(), weights.top(1)
            distance = torch.full_like(entropy, math.nan) if weights.offset is None else weights.distance()
            by_query = torch.stack([entropy, largest[..., 0], distance]).reshape(3, batch, heads, length)
            attends = (keys[..., 0] >= 0).reshape(batch, heads, length)
            first = weights.received()[..., 0].reshape(1, batch, heads).sum(1)
            sums = torch.cat([by_query.where(attends, 0).sum((1, 3)), first])
            self._calls.append((call.path, sums / attends.sum((0, 2))))

    def _end(self) -> bool:
        block = self._passes.pop()
        return block is not None and not block.__exit__(None, None, None)


def log_function(log: Any) -> Callable[[int, list[dict[str, Any]]], object]:
    """Return a function of (step, rows) that writes to a TensorBoard writer or a JSONL file, or is the log itself."""

    def add_scalars(step: int, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            path = f"{row['path']}, {row['call']}" if row["call"] else row["path"]
            head = "" if row["head"] is None else f"/{row['head']}"
            for name in (name for name in STATISTICS if row[name] is not None):
                log.add_scalar(f"{path}/{name}{head}", row[name], step)

    def append(step: int, rows: list[dict[str, Any]]) -> None:
        lines = "".join(json.dumps({"step": step} | row) + "\n" for row in rows)
        try:
            with open(log, "ab", buffering=0) as file:  # whole lines, in one write
                file.write(lines.encode())
        except OSError as error:
            if not rows:
                raise RegardError(f"watch: log can't be written: {error}") from error
            warn(f"watch: step {step} wasn't logged: {error}", stacklevel=2)  # training goes on

    if isinstance(log, str | os.PathLike):
        append(0, [])  # what can't be written is said before training
        return append
    if not (callable(log) or hasattr(log, "add_scalar")):
        raise RegardError(f"watch: log is a {type(log).__name__}, needs a path, a SummaryWriter or a function")
    return add_scalars if hasattr(log, "add_scalar") else log
