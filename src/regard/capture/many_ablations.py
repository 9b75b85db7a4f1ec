"""Run one text with many ablations or other changes, in batches, without repeating unchanged computations.

A plain pass of the text keeps the output of each layer. If all changes of a batch begin in layer k or later, the layers
before k return these outputs for each row. If no token attends to later tokens and all changes begin at token p or
later, the pass begins at p with the cached keys and values of the tokens before it (`regard.capture.prefix`).

Each batch is checked: a row without changes, and all rows before their first change, must match the plain pass. They
differ, or the pass fails, if layers exchange more than their output, or if they depend on earlier tokens by more than
keys and values. Then all tokens or all layers are computed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from regard.capture.build_trace import FROM_WITHIN, WHOLE_TEXT, CapturedPass, trace_of
from regard.capture.interventions.activations import Patch, Steer
from regard.capture.interventions.names import Ablate, CallId, CallIds, Head, tokens_at
from regard.capture.options import LAYERS_ALONE, NO_LAYERS, CaptureOptions
from regard.capture.prefix import NO_REUSE, KeptKeys, PassReuse, attends_back, without_first
from regard.capture.session import Session
from regard.capture.state import shown_stacks
from regard.errors import RegardError
from regard.text.tokens import Encoded
from regard.trace.trace import Trace

BATCH_TOKENS = 2048  # tokens of a whole batch; larger batches are hardly faster
# Allowed difference of a row without ablations from the plain pass, relative to a vector's length. Batch sizes affect
# rounding, but a layer that lacks something from an earlier layer differs by far more.
SAME = 1e-4
PASS_TOKENS = 64  # the fixed cost of a pass, expressed in tokens

Start = tuple[int, int, int]  # the start of a set of changes: stack (1 is the decoder), layer, first token


@dataclass(frozen=True)
class LayerOutputs:
    """The output of each layer in a plain pass.

    layers: the paths of each stack's layers, in execution order. outputs: by path. call_ids: of the pass's calls.
    """

    layers: tuple[tuple[str, ...], ...]
    outputs: Mapping[str, Any]
    call_ids: CallIds

    def before(self, start: Start) -> list[str]:
        """Return the paths of the layers that run before this start."""
        stack, layer, _ = start
        if stack >= len(self.layers):  # there is no decoder; the pass raises the error
            return []
        return [path for layers in self.layers[:stack] for path in layers] + list(self.layers[stack][:layer])

    @contextmanager
    def repeated(self, model: nn.Module, paths: Sequence[str], rows: int, past: int) -> Iterator[None]:
        """Make layers return their plain-pass outputs, for `rows` rows and without the first `past` tokens."""
        with ExitStack() as patches:
            for path in paths:
                forward = partial(_repeated_layer_output, without_first(self.outputs[path], past), rows)
                patches.enter_context(patch.object(model.get_submodule(path), "forward", forward))
            yield


class _RepeatedText:
    """A text that is run many times, and the results of its plain pass.

    plain: the outputs of its layers, None unless each attention call belongs to a layer. keys: the cached keys and
    values, None if no pass can begin within the text. keep: what to keep of each pass.
    """

    def __init__(self, passes: Session, source: Encoded, target: Encoded | None, *, logits: bool) -> None:
        self._passes, self._source, self._target = passes, source, target
        self.keep = CaptureOptions(NO_LAYERS, logits, attention_outputs=False, embeddings=False)
        self.plain: LayerOutputs | None = None
        self.keys: KeptKeys | None = None
        self._last: dict[str, Tensor] = {}
        self._trace: Trace | None = None

    def run(self, sets: Sequence[Sequence[Any]], reuse: PassReuse = NO_REUSE) -> CapturedPass:
        """Run the text once for each set of interventions, in one batch."""
        targets = None if self._target is None else [self._target] * len(sets)
        return self._passes.run([self._source] * len(sets), targets, sets, self.keep, reuse)

    def run_plain(self, *, within: bool) -> None:
        """Run the plain pass. within: whether later passes may begin within the text."""
        passes, outputs = self._passes, dict[str, list[Any]]()
        reuse = PassReuse(context=partial(kept_layer_outputs, passes.model, outputs))
        targets = None if self._target is None else [self._target]
        done = passes.run([self._source], targets, [()], LAYERS_ALONE, reuse)
        self._last = done.capture.last
        stacks = shown_stacks(done.stacks, pairs=passes.pairs)
        layers = tuple(tuple(f"{stack.path}.{n}" for n in range(stack.count - 1)) for stack in stacks)
        assert done.call_ids is not None
        ids, paths = dict(done.call_ids.ids), [path for of_stack in layers for path in of_stack]
        once = all(len(outputs.get(path, ())) == 1 for path in paths)
        if once and all(_call_is_of_layer(path, call, layers) for (path, _), call in ids.items()):
            self.plain = LayerOutputs(layers, {path: outputs[path][0] for path in paths}, ids)
        depth = 0 if self.plain is None else len(paths)
        takes = not passes.pairs and {"past_key_values", "use_cache"} <= passes.takes
        if not (within and takes and len(done.calls) == depth and all(map(attends_back, done.calls))):
            return
        outputs.clear()  # free memory for the next pass
        # run the text again with a cache, which is kept if the states are the same
        cached = KeptKeys()
        try:
            again = self.run([()], PassReuse(inputs=cached.filling))
        except (RegardError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception:  # the architecture doesn't support this cache
            return
        same = all(_same_layer_states(again.capture.last[name][0], plain[0]) for name, plain in self._last.items())
        if same and cached.complete(depth, len(self._source.tokens)):
            self.keys, self._trace = cached, trace_of(again, 0)

    def run_from(self, sets: Sequence[Sequence[Any]], start: Start, firsts: Sequence[int]) -> CapturedPass | None:
        """Run sets of changes from this start on, with an unchanged first row. Returns the pass.

        firsts: the first token that each set changes. Returns None if unchanged results differ from the plain pass.
        """
        assert self.plain is not None
        past, rows = start[2], [(), *sets]
        skipped = self.plain.before(start)
        reuse = PassReuse(
            self.plain.call_ids,
            frozenset(skipped),
            partial(self.plain.repeated, self._passes.model, skipped, len(rows), past),
            partial(self.keys.continued, past=past) if past and self.keys is not None else dict,
            past,
        )
        try:
            done = self.run(rows, reuse)
            unchanged = [len(self._source.tokens), *(firsts if past else ())]
            same = all(
                _same_layer_states(done.capture.last[name][row, : stop - past], plain[0, past:stop])
                for name, plain in self._last.items()
                for row, stop in enumerate(unchanged)
            )
        except (RegardError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception:  # a later layer needs more than an earlier layer's output
            same = False
        if not same:
            return None
        if past and self._trace is not None:
            done.earlier = past, self._trace
            done.notes += (FROM_WITHIN,)
        return done


def ablated(
    passes: Session, source: Encoded, target: Encoded | None, sets: Sequence[Sequence[Any]], *, logits: bool, limit: int
) -> Iterator[tuple[list[tuple[int, int]], CapturedPass]]:
    """Run a text once per set of ablations. Yields passes with pairs of (set number, row in the batch)."""
    starts = [_start_of_changes(interventions, source if target is None else None) for interventions in sets]
    text = _RepeatedText(passes, source, target, logits=logits)
    within = any(start[2] for start in starts)
    if any(start > (0, 0, 0) for start in starts) and not passes.reports_weights:
        text.run_plain(within=within)
    left = list(range(len(sets)))
    length = len(source.tokens) + (0 if target is None else len(target.tokens))
    layers = [] if text.plain is None else [len(stack) for stack in text.plain.layers]
    if text.keys is not None:
        for numbers, start in cheapest_batches(starts, length, layers, limit):
            result = text.run_from([sets[n] for n in numbers], start, [starts[n][2] for n in numbers])
            if result is None:
                break
            yield [(n, row) for row, n in enumerate(numbers, 1)], result
            left = [n for n in left if n not in set(numbers)]
    notes = (WHOLE_TEXT,) if within and left else ()
    from_layers = [(stack, layer, 0) for stack, layer, _ in (starts[n] for n in left)]
    for batch, start in cheapest_batches(from_layers, length, layers, limit):
        numbers = [left[n] for n in batch]
        if text.plain is not None and start > (0, 0, 0):
            result = text.run_from([sets[n] for n in numbers], start, [0] * len(numbers))
            if result is not None:
                result.notes += notes
                yield [(n, row) for row, n in enumerate(numbers, 1)], result
                continue
            text.plain = None
        done = text.run([sets[n] for n in numbers])
        done.notes += notes
        yield [(n, row) for row, n in enumerate(numbers)], done


def _call_is_of_layer(path: str, call: CallId | None, layers: Sequence[Sequence[str]]) -> bool:
    """Return whether the call's module is inside the layer that made the call."""
    if call is None:  # outside the shown layers, which are never skipped
        return True
    stack = layers[0 if call.part in (None, "encoder") else 1]
    return call.layer < len(stack) and path.startswith(f"{stack[call.layer]}.")


@contextmanager
def kept_layer_outputs(model: nn.Module, outputs: dict[str, list[Any]]) -> Iterator[None]:
    """Keep the outputs of all items of module lists inside the block, by path, in execution order."""
    outputs.clear()  # of a pass that had to be repeated
    with ExitStack() as hooks:
        for path, module in model.named_modules():
            for number, item in enumerate(module) if isinstance(module, nn.ModuleList) else ():
                kept = outputs.setdefault(f"{path}.{number}" if path else str(number), [])
                hooks.enter_context(item.register_forward_hook(lambda _m, _a, out, kept=kept: kept.append(out)))
        yield


def _repeated_layer_output(output: Any, rows: int, *_: Any, **__: Any) -> Any:
    """Repeat a layer's output for one text for several rows, as a copy because the model may write into it.

    It replaces the layer's forward and ignores its arguments.
    """
    if isinstance(output, Tensor):
        return output.expand(rows, *output.shape[1:]).clone() if output.ndim >= 3 and len(output) == 1 else output
    if type(output) in (tuple, list):
        return type(output)(_repeated_layer_output(value, rows) for value in output)
    return output


def _start_of_changes(interventions: Sequence[Any], text: Encoded | None) -> Start:
    """Return the start of a set of changes: stack, layer, first token. text: None to begin at token 0."""
    starts: list[tuple[tuple[int, int], int]] = []
    for change in interventions:
        first = 0
        if isinstance(change, Ablate):
            target, part = change.target, change.target.part
            layer = target.layer if isinstance(target, Head) else min(target.layers or (0,))
        else:
            part = change.part
            of_states = isinstance(change, Steer) or change.what == "hidden_states"
            layer = change.state if of_states else int(change.layer)
            # error messages number tokens from the start of the pass, so it must be the start of the text
            places = None if isinstance(change, Patch) and change.what == "weights" else change.at
            if text is not None and places is not None:
                first = min(tokens_at("at", text.text, text.tokens, places), default=0)
        starts.append(((1 if part in ("decoder", "cross") else 0, layer), first))
    if not starts:
        return 0, 0, 0
    return *min(start for start, _ in starts), min(first for _, first in starts)


def _same_layer_states(a: Tensor, b: Tensor) -> bool:
    return bool(((a - b).norm(dim=-1) <= SAME * b.norm(dim=-1)).all()) if torch.isfinite(b).all() else False


def cheapest_batches(
    starts: Sequence[Start], length: int, layers: Sequence[int], limit: int
) -> Iterator[tuple[list[int], Start]]:
    """Yield batches of at most `limit` set numbers that run from their earliest start, each with this start.

    Sets are ordered by layer, then by token. The order is split into batches that minimize the cost of all passes.

    Args:
        length: the number of tokens of the text.
        layers: the number of layers of each stack, none if no layer can be skipped.
    """
    depth = sum(layers)
    order = sorted(range(len(starts)), key=lambda n: (starts[n], n))
    skipped = [min(sum(layers[:stack]) + layer, depth) for stack, layer, _ in starts]
    # costs[n]: the lowest cost of the first n sets; cut[n]: the first set of their last batch
    costs, cut = [0.0], [0]
    for stop in range(1, len(order) + 1):
        best, at, first = math.inf, stop - 1, length
        for start in range(stop - 1, max(-1, stop - 1 - limit), -1):
            first = min(first, starts[order[start]][2])
            cost = ((stop - start) * (length - first) + PASS_TOKENS) * (depth - skipped[order[start]] + 1)
            if costs[start] + cost < best:
                best, at = costs[start] + cost, start
        costs.append(best)
        cut.append(at)
    ends = [len(order)]
    while ends[-1]:
        ends.append(cut[ends[-1]])
    for stop, start in zip(ends[-2::-1], ends[:0:-1], strict=True):
        numbers = order[start:stop]
        stack, layer, _ = starts[numbers[0]]
        yield numbers, (stack, layer, min(starts[n][2] for n in numbers))
