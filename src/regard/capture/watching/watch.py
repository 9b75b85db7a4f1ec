"""`watch`: the attention of any PyTorch module, unchanged, or of everything that runs in this thread."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from regard.attention.ablation import Ablation, EdgeAblation, HeadAblation, ablating
from regard.attention.recording import call_namer, open_records
from regard.capture.interventions.names import Ablate, Edge
from regard.capture.watching.call_sites import CallSites, without_wrappers
from regard.capture.watching.seen import WatchedCalls
from regard.capture.watching.steps import StepLogger
from regard.capture.watching.watch_mode import WatchMode
from regard.checks import is_whole
from regard.errors import RegardError


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

    Watching changes no output, gradient or random number, except that compiled modules run eagerly inside the block, in
    other threads too, and PyTorch's fast path for nn.TransformerEncoder is off. `seen.notes` says so.

    Args:
        module: any PyTorch module, also inside DataParallel or compiled. Default: everything in this thread.
        interventions: ablations to apply meanwhile, such as `regard.ablate("blocks.3.attn", head=5)`.
        copy: copy each query, key and mask. Without it, reading a call raises `RegardError` if its tensors were written
            to since.
        keep: how many calls of each path to keep, the last. Default: all.
        every: watch the first pass of every n-th training step (training mode, gradients on). Passes without a change
            of the weights in between are one step. Default: watch everything, or 100 if log is given.
        log: where to write statistics of each head instead of keeping calls: a path of JSON lines, a TensorBoard
            SummaryWriter, or a function of (step, rows). A row has a path, call and head, and means over texts and
            queries: entropy (nats), largest_weight, distance (tokens) and first_token, the first key's weight.

    Raises:
        RegardError: no attention was computed in the block (its first step, with every), with a line for each softmax
            that was passed over and all that can't be seen; or an intervention fits no call; or an argument is wrong.
    """
    if module is not None and not isinstance(module, nn.Module):
        raise RegardError(f"watch: given {type(module).__name__}, needs a torch.nn.Module, or nothing")
    if any(number is not None and not (is_whole(number) and number >= 1) for number in (keep, every)):
        raise RegardError("watch: keep and every need to be whole numbers, 1 or more")
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
    """Watch by a mode inside the block."""
    with ExitStack() as stack:
        # What is compiled before or inside the block runs as it was written: dynamo can't trace a function mode.
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        # Calls of `regard.attend` are recorded there, by the path of their module.
        stack.callback(open_records.reset, open_records.set((*open_records.get(), mode.seen)))
        stack.callback(call_namer.reset, call_namer.set(mode.seen.sites.path_of_attend))
        stack.enter_context(mode)
        stack.callback(mode.finish)
        yield


def _as_ablation(intervention: object) -> Ablation:
    """Return what `regard.ablate` named as an ablation of calls."""
    if isinstance(intervention, Ablation):
        return intervention
    if not isinstance(intervention, Ablate):
        raise RegardError(f"watch: given {type(intervention).__name__}, needs what regard.ablate(...) returns")
    target = intervention.target
    if target.part is not None:
        raise RegardError("watch: `part` names a stack of a model that was loaded: give the path of a module instead")
    if not isinstance(target, Edge):
        return HeadAblation(layers=[target.layer], heads=[target.head])
    if not isinstance(target.query, int) or not isinstance(target.key, int):
        raise RegardError("watch: words are not known here: give the positions of an edge's query and key")
    return EdgeAblation(layers=target.layers, heads=target.heads, queries=[target.query], keys=[target.key])
