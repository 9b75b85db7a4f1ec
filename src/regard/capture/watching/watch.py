"""`watch`: the attention of any PyTorch module, unchanged, or of everything that runs in this thread."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from regard.attention.ablation import Ablation, EdgeAblation, HeadAblation, ablating
from regard.attention.recording import call_namer, open_records
from regard.capture.interventions.names import Ablate, Edge
from regard.capture.watching.call_sites import CallSites, without_wrappers
from regard.capture.watching.seen import Seen
from regard.capture.watching.watch_mode import WatchMode
from regard.errors import RegardError

HIDDEN = "Calls in other threads, in TorchScript and in compiled kernels can't be seen."


@contextmanager
def watch(
    module: nn.Module | None = None, *, interventions: Sequence[Ablate | Ablation] = (), copy: bool = False
) -> Iterator[Seen]:
    """Watch the attention calls of a module inside the block, as the module computes them.

        with regard.watch(model) as seen:
            model(x)
        seen["blocks.3.attn"].weights[0, 5]

    Watching changes no output, gradient or random number, except that compiled modules run eagerly inside the block, in
    other threads too, and PyTorch's fast path for nn.TransformerEncoder is off. `seen.notes` says so.

    Args:
        module: any PyTorch module, also inside DataParallel or compiled. Default: everything in this thread.
        interventions: ablations to apply meanwhile, such as `regard.ablate("blocks.3.attn", head=5)`.
        copy: copy each query, key and mask. Without it, reading a call raises `RegardError` if its tensors were written
            to since.

    Raises:
        RegardError: no attention was computed in the block, with a line for each softmax that was passed over and all
            that can't be seen; or an intervention fits no call.
    """
    if module is not None:
        if not isinstance(module, nn.Module):
            raise RegardError(f"watch: given {type(module).__name__}, needs a torch.nn.Module, or nothing")
        module = without_wrappers(module)
    ablations = [_as_ablation(intervention) for intervention in interventions]
    sites = CallSites(module)
    mode = WatchMode(sites, copy=copy)
    seen = mode.seen
    with ExitStack() as stack:
        # What is compiled before or inside the block runs as it was written: dynamo can't trace a function mode.
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        block = stack.enter_context(ablating(ablations)) if ablations else None
        # Calls of `regard.attend` are recorded there, by the path of their module.
        stack.callback(open_records.reset, open_records.set((*open_records.get(), seen)))
        stack.callback(call_namer.reset, call_namer.set(sites.path_of_attend))
        stack.enter_context(mode)
        stack.callback(mode.finish)
        yield seen
    for path, part in module.named_modules() if module is not None else ():
        if isinstance(part, torch.jit.ScriptModule) and not any(
            f"{path}.".startswith(f"{other}." * bool(other)) for other in seen.unseen
        ):
            seen.unseen[path] = "TorchScript runs outside Python"
    if mode.error is not None:
        raise mode.error
    if not seen:
        raise RegardError("\n  ".join(["watch: no attention was computed in the block", *seen.others(), HIDDEN]))
    if block is not None and block.unmet:
        calls = ", ".join(dict.fromkeys(path for path, _ in seen))
        raise RegardError(f"watch: {block.unmet[0]} applied to no call; there were calls of {calls}")


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
