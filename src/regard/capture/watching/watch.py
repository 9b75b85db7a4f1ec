"""Record the attention of any unmodified PyTorch module, or of everything that runs in this thread."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from warnings import warn

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import register_optimizer_step_post_hook

from regard.attention.ablation import Ablation, EdgeAblation, HeadAblation, ablating
from regard.attention.map_statistics import Statistics
from regard.attention.recording import Call, call_namer, open_records
from regard.capture.interventions.names import Ablate, Edge
from regard.capture.watching.call_sites import CallSites, in_backward_pass, without_wrappers
from regard.capture.watching.seen import WatchedCalls
from regard.capture.watching.watch_mode import WatchMode
from regard.checks import is_whole
from regard.errors import RegardError
from regard.files import plain_json_values

STATISTICS = ("entropy", "largest_weight", "distance", "first_token")
SWEEP = Statistics.only(top=1, entropy=True, received=True, distance=True)


@contextmanager
def watch(
    module: nn.Module | None = None, *, interventions: Sequence[Ablate | Ablation] | Ablate | Ablation = (),
    copy: bool = False, keep: int | None = None, every: int | None = None, log: Any = None,
) -> Iterator[WatchedCalls]:  # fmt: skip
    """Watch the attention calls of a module inside the block, as the module computes them.

        with regard.watch(model) as seen:
            model(x)
        seen["blocks.3.attn"].weights[0, 5]

        with regard.watch(model, every=100, log="attention.jsonl"):
            for batch in loader:
                ...  # a training loop

    Watching doesn't change outputs, gradients or random numbers. Inside the block, compiled modules run eagerly, even
    in other threads, and PyTorch's fast path for nn.TransformerEncoder is off. `seen.notes` reports this.

    Args:
        module: any PyTorch module, including compiled and DataParallel modules. Default: everything in this thread.
        interventions: ablations to apply in the block, such as `regard.ablate("blocks.3.attn", head=5)`.
        copy: copy each query, key and mask. Without copies, reading a call raises `RegardError` if its tensors have
            changed.
        keep: keep the last `keep` calls of each path. Default: all.
        every: watch the first pass of every n-th training step (training mode, gradients on). Passes between two
            updates of the weights are one step. Default: watch everything, or 100 with log.
        log: where to write statistics of each head instead of keeping calls: a path of JSON lines, a TensorBoard
            SummaryWriter, or a function of (step, rows). A row has a path, call and head, and means over texts and
            queries: entropy (nats), largest_weight, distance (tokens) and first_token, the first key's weight.

    Raises:
        RegardError: the block (or its first step, with every) computed no attention, an intervention fits no call, or
            an argument is wrong. Without attention, the error lists skipped softmaxes and what can't be seen.
    """
    if module is not None and not isinstance(module, nn.Module):
        raise RegardError(f"watch: got {type(module).__name__}, expected a torch.nn.Module, or nothing")
    if any(number is not None and not (is_whole(number) and number >= 1) for number in (keep, every)):
        raise RegardError("watch: keep and every must be whole numbers of 1 or more")
    every = 100 if log is not None and every is None else every
    if every is not None and (module is None or interventions):
        raise RegardError("watch: every needs a module, and no interventions")
    if isinstance(interventions, Ablate | Ablation):
        interventions = [interventions]
    ablations = [_as_ablation(intervention) for intervention in interventions]
    steps = StepLogger(module, every, log) if module is not None and every is not None else None
    sites = CallSites(None if module is None else without_wrappers(module))
    seen = WatchedCalls(sites, keep=keep, on_call=steps.add if steps is not None and log is not None else None)
    mode = WatchMode(seen, copy=copy)
    with ExitStack() as stack:
        block = stack.enter_context(ablating(ablations)) if ablations else None
        stack.enter_context(watching(mode) if steps is None else steps.watching(lambda: watching(mode), seen))
        yield seen
    if steps is not None:
        return
    if mode.error is not None:
        raise mode.error
    if not seen:
        raise seen.nothing_seen()
    if block is not None and block.unmet:
        calls = ", ".join(dict.fromkeys(path for path, _ in seen))
        raise RegardError(f"watch: {block.unmet[0]} applied to no call; there were calls of {calls}")


@contextmanager
def watching(mode: WatchMode) -> Iterator[None]:
    """Watch all attention calls inside the block with a function mode."""
    with ExitStack() as stack:
        # Compiled code runs eagerly, because dynamo can't trace a function mode.
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        # `regard.attend` records its own calls, by the path of their module.
        stack.callback(open_records.reset, open_records.set((*open_records.get(), mode.seen)))
        stack.callback(call_namer.reset, call_namer.set(mode.seen.sites.path_of_attend))
        stack.enter_context(mode)
        stack.callback(mode.finish)
        yield


def _as_ablation(intervention: object) -> Ablation:
    """Convert a result of `regard.ablate` to an ablation of attention calls."""
    if isinstance(intervention, Ablation):
        return intervention
    if not isinstance(intervention, Ablate):
        raise RegardError(f"watch: got {type(intervention).__name__}, expected regard.ablate(...)")
    target = intervention.target
    if target.part is not None:
        raise RegardError("watch: `part` names a stack of a loaded model: pass the path of a module instead")
    if not isinstance(target, Edge):
        return HeadAblation(layers=[target.layer], heads=[target.head])
    if not isinstance(target.query, int) or not isinstance(target.key, int):
        raise RegardError("watch: words are unknown here: pass the positions of an edge's query and key")
    return EdgeAblation(layers=target.layers, heads=target.heads, queries=[target.query], keys=[target.key])


class StepLogger:
    """Watch the first training pass of every n-th step, and log the calls passed to `add`."""

    def __init__(self, module: nn.Module, every: int, log: Any) -> None:
        self.module, self.every, self.step = module, every, -1
        self._log = None if log is None else log_function(log)
        self._parameters = {id(p): p for p in module.parameters() if not (is_lazy(p) or p.is_inference())}
        self._frozen = not any(p.requires_grad for p in self._parameters.values())
        self._updated, self._versions, self._watched, self._warned = True, 0, -1, False
        self._passes: list[AbstractContextManager[None] | None] = []  # running passes, outermost first
        self._calls: list[tuple[str, Tensor]] = []

    def __reduce__(self) -> Any:
        return StepLogger, (nn.Identity(), 1, None)  # the hooks of a copied or saved module do nothing

    @contextmanager
    def watching(self, block: Callable[[], AbstractContextManager[None]], seen: WatchedCalls) -> Iterator[None]:
        """Enter `block` around each watched pass. seen: stores its calls if there is no log."""
        self._block, self._seen = block, seen
        hooks = [
            self.module.register_forward_pre_hook(self._before_pass, prepend=True),
            self.module.register_forward_hook(self._after_pass, always_call=True),
            register_optimizer_step_post_hook(self._after_update),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
            while self._passes:  # after Ctrl-C during a pass
                self._end_pass()
        self._warn_of_no_pass()

    def _before_pass(self, module: nn.Module, _: Any) -> None:
        if torch.compiler.is_compiling():  # dynamo can't trace the block that the hooks enter
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

    def _after_pass(self, _: nn.Module, __: Any, output: Any) -> None:
        if torch.compiler.is_compiling() or not self._passes or not self._end_pass():
            return
        if output is None and sys.exc_info()[0] is not None:  # the pass failed
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
        """Note an update of the weights. Fused optimizers may not change tensor versions."""
        if any(id(p) in self._parameters for group in optimizer.param_groups for p in group["params"]):
            self._updated = True
            self._warn_of_no_pass()
        self._updated |= self._frozen  # other weights are trained

    def _warn_of_no_pass(self) -> None:
        if self.step < 0 and not self._warned:
            self._warned = True
            fault = "made no pass in training mode with gradients on. Pass the compiled module if you use torch.compile"
            warn(f"regard.watch: the module that it was given {fault}", stacklevel=2)

    def add(self, call: Call) -> None:
        """Reduce a call to means over texts and queries, per head. Queries without any allowed key are excluded."""
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

    def _end_pass(self) -> bool:
        block = self._passes.pop()
        return block is not None and not block.__exit__(None, None, None)


def log_function(log: Any) -> Callable[[int, list[dict[str, Any]]], object]:
    """Return a function of (step, rows) that writes to a TensorBoard writer or a JSONL file, or `log` if callable."""

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
        append(0, [])  # raises write errors before training starts
        return append
    if not (callable(log) or hasattr(log, "add_scalar")):
        raise RegardError(f"watch: log: got {type(log).__name__}, expected a path, a SummaryWriter or a function")
    return add_scalars if hasattr(log, "add_scalar") else log
