"""Run one text under many ablations: in batches, and without computing the layers below the first ablated one again.

A plain pass of the text alone keeps what every layer gave. In a batch whose ablations all begin in layer k or later,
the layers before k give that again, a row each. Row 0 of every such batch has no ablation, and its last hidden
state has to be that of the plain pass: where a family's layers do not pass everything on through what they give, it is
not, or the pass fails, and all layers are computed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture.build_trace import CapturedPass
from regard.capture.interventions.call_ids import CallId, KnownCallIds
from regard.capture.interventions.given import checked
from regard.capture.interventions.names import Ablate, Head
from regard.capture.interventions.steer import Steer
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.capture.session import LayerReuse, Session
from regard.errors import RegardError
from regard.text.tokens import Encoded

BATCH_TOKENS = 2048  # of all texts of a batch: from about here on a larger one is no faster
SMALL = 0.25  # of the largest batch: below it, sets of later starts join
SAME = 1e-4  # of a vector's length: how far a row without ablations may be from the plain pass

Start = tuple[int, int]  # the stack (1: a decoder's) and the layer in it that an ablation begins in


@dataclass(frozen=True)
class LayerOutputs:
    """What each layer of a plain pass gave.

    layers: the paths of each stack's layers, in the order they ran. outputs: by path. call_ids: of the pass's calls.
    """

    layers: tuple[tuple[str, ...], ...]
    outputs: Mapping[str, Any]
    call_ids: KnownCallIds

    def before(self, start: Start) -> list[str]:
        """The paths of the layers that run before an ablation of this start."""
        stack, layer = start
        if stack >= len(self.layers):  # a decoder's, which there is none of: the pass says so
            return []
        return [path for layers in self.layers[:stack] for path in layers] + list(self.layers[stack][:layer])

    @contextmanager
    def repeated(self, model: nn.Module, paths: Sequence[str], rows: int) -> Iterator[None]:
        """Have layers repeat what they gave in the plain pass, for each of so many rows."""
        layers = {path: model.get_submodule(path) for path in paths}
        before: dict[str, Any] = {path: layer.__dict__.get("forward") for path, layer in layers.items()}
        try:
            for path, layer in layers.items():
                layer.forward = partial(_repeat, self.outputs[path], rows)
            yield
        finally:
            for path, layer in layers.items():
                del layer.forward
                if before[path] is not None:  # another library's, such as accelerate's
                    layer.forward = before[path]


def ablated(
    passes: Session, source: Encoded, target: Encoded | None, sets: Sequence[Sequence[Any]], *, logits: bool, most: int
) -> Iterator[tuple[list[tuple[int, int]], CapturedPass]]:
    """Run a text once for each set of ablations; yields passes, each with its (number of the set, row of the batch).

    target: of an encoder-decoder, what its decoder reads. most: how many sets run together at most.

    Raises:
        RegardError: what is no ablation, or one that means nothing in this model and text.
    """
    keep = CaptureOptions(NO_LAYERS, logits, attention_outputs=False, embeddings=False)
    starts = [min(map(_start, each), default=(0, 0)) for each in sets]
    plain: LayerOutputs | None = None
    if any(start > (0, 0) for start in starts):
        unablated, plain = _plain_pass(passes, source, target)
    for numbers, start in _batches(starts, most):
        if plain is not None and start > (0, 0):
            try:
                done = _run(passes, source, target, [(), *(sets[n] for n in numbers)], keep, plain, start)
                same = all(_same(done.last[name][0], unablated.last[name][0]) for name in unablated.last)
            except (RegardError, MemoryError, torch.OutOfMemoryError):
                raise
            except Exception:  # what a layer left beside its output for a later one is not there: whatever that raises
                same = False
            if same:
                yield [(n, row) for row, n in enumerate(numbers, 1)], done
                continue
            plain = None
        done = _run(passes, source, target, [sets[n] for n in numbers], keep)
        yield [(n, row) for row, n in enumerate(numbers)], done


def _run(
    passes: Session,
    source: Encoded,
    target: Encoded | None,
    sets: Sequence[Sequence[Any]],
    keep: CaptureOptions,
    plain: LayerOutputs | None = None,
    start: Start = (0, 0),
) -> CapturedPass:
    rows = len(sets)
    targets = None if target is None else [target] * rows
    if plain is None:
        return passes.run([source] * rows, targets, sets, keep)
    skipped = plain.before(start)
    reuse = LayerReuse(plain.call_ids, frozenset(skipped), partial(plain.repeated, passes.model, skipped, rows))
    return passes.run([source] * rows, targets, sets, keep, reuse)


def _plain_pass(passes: Session, source: Encoded, target: Encoded | None) -> tuple[CapturedPass, LayerOutputs | None]:
    """The pass without ablations, and what its layers gave; None where layers and attention do not go one by one."""
    outputs: dict[str, list[Any]] = {}
    keep = CaptureOptions(None, logits=False, attention_outputs=False)
    reuse = LayerReuse(context=partial(_kept_outputs, passes.model, outputs))
    done = passes.run([source], None if target is None else [target], [()], keep, reuse)
    stacks = list(done.stacks.values())
    if not passes.pairs:
        stacks = [max(stacks, key=lambda each: each.count)] if stacks else []
    layers = tuple(tuple(f"{each.path}.{n}" for n in range(each.count - 1)) for each in stacks)
    assert done.call_ids is not None
    known = KnownCallIds.of(done.call_ids)
    once = all(len(outputs.get(path, ())) == 1 for paths in layers for path in paths)
    in_place = all(_of_its_layer(path, call, layers) for (path, _), call in known.ids.items())
    if not (once and in_place):
        return done, None
    return done, LayerOutputs(layers, {path: outputs[path][0] for paths in layers for path in paths}, known)


def _of_its_layer(path: str, call: CallId | None, layers: Sequence[Sequence[str]]) -> bool:
    """Whether a call's module belongs to the layer that made the call."""
    if call is None:  # outside the layers that are shown: nothing of it is skipped
        return True
    stack = layers[0 if call.part in (None, "encoder") else 1]
    return call.layer < len(stack) and path.startswith(f"{stack[call.layer]}.")


@contextmanager
def _kept_outputs(model: nn.Module, outputs: dict[str, list[Any]]) -> Iterator[None]:
    """Keep what the items of all lists of modules give, in the order they run."""
    hooks = ExitStack()
    outputs.clear()  # of a pass that had to be made once more
    for path, module in model.named_modules():
        if isinstance(module, nn.ModuleList):
            for number, item in enumerate(module):
                own = outputs.setdefault(f"{path}.{number}" if path else str(number), [])
                hooks.enter_context(item.register_forward_hook(lambda _m, _a, out, own=own: own.append(out)))
    with hooks:
        yield


def _repeat(output: Any, rows: int, *_: Any, **__: Any) -> Any:
    """Stand in for a layer's forward: return what it gave before, whatever it is called with."""
    return _repeated(output, rows)


def _repeated(output: Any, rows: int) -> Any:
    """What a layer gave one text, given for several: copies, for what comes after may write into them."""
    if isinstance(output, Tensor):
        return output.expand(rows, *output.shape[1:]).clone() if output.ndim >= 3 and len(output) == 1 else output
    if type(output) in (tuple, list):
        return type(output)(_repeated(each, rows) for each in output)
    return output


def _batches(starts: Sequence[Start], most: int) -> Iterator[tuple[list[int], Start]]:
    """The numbers of sets that run together, at most so many, and the first start among them.

    They are of one start, but where that makes a small batch, those of the next starts join it: what is then computed
    again for them costs less than a pass of their own.
    """
    order = sorted(range(len(starts)), key=lambda n: (starts[n], n))
    batch: list[int] = []
    for n in order:
        other = bool(batch) and starts[n] != starts[batch[-1]]
        if len(batch) == most or (other and len(batch) >= most * SMALL):
            yield batch, starts[batch[0]]
            batch = []
        batch.append(n)
    if batch:
        yield batch, starts[batch[0]]


def _start(intervention: Any) -> Start:
    each = checked(intervention)
    if isinstance(each, Ablate):
        place, part = each.target, each.target.part
        layer = place.layer if isinstance(place, Head) else min(place.layers or (0,))
    else:
        part = each.part
        layer = each.state if isinstance(each, Steer) or each.what == "hidden_states" else int(each.layer)
    return (1 if part in ("decoder", "cross") else 0), layer


def _same(a: Tensor, b: Tensor) -> bool:
    return bool(((a - b).norm(dim=-1) <= SAME * b.norm(dim=-1)).all()) if torch.isfinite(b).all() else False
