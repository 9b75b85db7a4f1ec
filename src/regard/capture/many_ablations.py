"""Run one text under many ablations, or other changes, in batches, without repeating unchanged computations.

A plain pass of the text alone keeps the output of every layer. In a batch whose changes all begin in layer k or later,
the layers before k return that output again, for each row. If no token attends to later tokens, and all changes begin
at token p or later, the pass begins at p, with the keys and values of the tokens before it (`regard.capture.prefix`).

Each batch is checked: a row without changes, and all rows before their first change, have to be as in the plain pass.
If layers pass on something besides their output, or keep more of earlier tokens than keys and values, the rows differ,
or the pass fails; then all tokens, or all layers, are computed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture.build_trace import FROM_WITHIN, WHOLE_TEXT, CapturedPass, trace_of
from regard.capture.interventions.activations import Patch, Steer
from regard.capture.interventions.names import Ablate, CallId, CallIds, Head, tokens_at
from regard.capture.options import LAYERS_ALONE, NO_LAYERS, CaptureOptions
from regard.capture.prefix import NO_REUSE, EarlierRows, KeptKeys, KeysValues, PassReuse, attends_back, without_first
from regard.capture.session import Session
from regard.capture.state import shown_stacks
from regard.errors import RegardError
from regard.text.tokens import Encoded

BATCH_TOKENS = 2048  # of all texts of a batch: from about here on a larger one is no faster
# Relative to a vector's length: how far a row without ablations may be from the plain pass. Batches of other sizes
# round differently; a layer that lacks something from an earlier layer is off by far more.
SAME = 1e-4
SMALL = 0.25  # of the largest batch: below it, sets of later starts join
PASS_TOKENS = 64  # the cost of a pass besides its tokens, in tokens

Start = tuple[int, int, int]  # where a set of changes begins: stack (1: a decoder's), layer in it, first token


@dataclass(frozen=True)
class LayerOutputs:
    """The output of each layer in a plain pass.

    layers: the paths of each stack's layers, in the order they ran. outputs: by path. call_ids: of the pass's calls.
    """

    layers: tuple[tuple[str, ...], ...]
    outputs: Mapping[str, Any]
    call_ids: CallIds

    def before(self, start: Start) -> list[str]:
        """Return the paths of the layers that run before an ablation of this start."""
        stack, layer, _ = start
        if stack >= len(self.layers):  # a decoder's, which there is none of: the pass says so
            return []
        return [path for layers in self.layers[:stack] for path in layers] + list(self.layers[stack][:layer])

    @contextmanager
    def repeated(self, model: nn.Module, paths: Sequence[str], rows: int, past: int) -> Iterator[None]:
        """Have layers return their outputs of the plain pass, for `rows` rows and without the first `past` tokens."""
        layers = {path: model.get_submodule(path) for path in paths}
        before: dict[str, Any] = {path: layer.__dict__.get("forward") for path, layer in layers.items()}
        try:
            for path, layer in layers.items():
                layer.forward = partial(_repeated_layer_output, without_first(self.outputs[path], past), rows)
            yield
        finally:
            for path, layer in layers.items():
                del layer.forward
                if before[path] is not None:  # another library's, such as accelerate's
                    layer.forward = before[path]


class _RepeatedText:
    """One text that is run many times, and the results of its plain pass.

    plain: the outputs of its layers, None unless layers and attention calls correspond. keys: attention's keys and
    values, None if no pass can begin within the text. keep: what to keep of each pass.
    """

    def __init__(self, passes: Session, source: Encoded, target: Encoded | None, *, logits: bool) -> None:
        self._passes, self._source, self._target = passes, source, target
        self.keep = CaptureOptions(NO_LAYERS, logits, attention_outputs=False, embeddings=False)
        self.plain: LayerOutputs | None = None
        self.keys: KeysValues | None = None
        self._last: dict[str, Tensor] = {}
        self._earlier: EarlierRows | None = None

    def run(self, sets: Sequence[Sequence[Any]], reuse: PassReuse = NO_REUSE) -> CapturedPass:
        """Run the text once for each set of interventions, in one batch."""
        targets = None if self._target is None else [self._target] * len(sets)
        return self._passes.run([self._source] * len(sets), targets, sets, self.keep, reuse)

    def run_plain(self, *, within: bool) -> None:
        """Run the plain pass. within: whether later passes are to begin within the text."""
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
        outputs.clear()  # before memory is needed for another pass
        # the text once more, with a cache, which is kept if the states are the same
        cached = KeptKeys()
        try:
            again = self.run([()], PassReuse(inputs=cached.inputs))
        except (RegardError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception:  # a family that keeps something else in its cache: whatever that raises
            return
        if all(_same_layer_states(again.capture.last[name][0], plain[0]) for name, plain in self._last.items()):
            self.keys = cached.of(depth, len(self._source.tokens))
            trace = trace_of(again, 0)
            self._earlier = EarlierRows(0, trace.last_hidden_state, trace.logits)

    def run_from(self, sets: Sequence[Sequence[Any]], start: Start, firsts: Sequence[int]) -> CapturedPass | None:
        """Run sets of changes from a layer and a token on, after a first row without changes; return the pass.

        firsts: the first token that each set changes. None if results differ that have to be those of the plain pass.
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
        except Exception:  # what a layer left beside its output for a later one is not there: whatever that raises
            same = False
        if not same:
            return None
        if past and self._earlier is not None:
            done.earlier = replace(self._earlier, past=past)
            done.notes += (FROM_WITHIN,)
        return done


def ablated(
    passes: Session, source: Encoded, target: Encoded | None, sets: Sequence[Sequence[Any]], *, logits: bool, most: int
) -> Iterator[tuple[list[tuple[int, int]], CapturedPass]]:
    """Run a text once for each set of ablations; yield passes, each with its (number of the set, row of the batch)."""
    starts = [_start_of_changes(interventions, source if target is None else None) for interventions in sets]
    text = _RepeatedText(passes, source, target, logits=logits)
    within = any(start[2] for start in starts)
    if any(start > (0, 0, 0) for start in starts) and not passes.reports_weights:
        text.run_plain(within=within)
    left = list(range(len(sets)))
    notes: tuple[str, ...] = ()
    if text.plain is not None and text.keys is not None:
        for numbers, start in by_position(starts, len(source.tokens), len(text.plain.layers[0]), most):
            result = text.run_from([sets[n] for n in numbers], start, [starts[n][2] for n in numbers])
            if result is None:
                break
            yield [(n, row) for row, n in enumerate(numbers, 1)], result
            left = [n for n in left if n not in set(numbers)]
    if within and left:
        notes = (WHOLE_TEXT,)
    for batch, start in ablation_batches_by_layer([starts[n] for n in left], most):
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
    """Return whether a call's module belongs to the layer that made the call."""
    if call is None:  # outside the layers that are shown: nothing of it is skipped
        return True
    stack = layers[0 if call.part in (None, "encoder") else 1]
    return call.layer < len(stack) and path.startswith(f"{stack[call.layer]}.")


@contextmanager
def kept_layer_outputs(model: nn.Module, outputs: dict[str, list[Any]]) -> Iterator[None]:
    """Keep the outputs of all items of module lists inside the block, in the order they run, by their paths."""
    outputs.clear()  # of a pass that had to be made once more
    with ExitStack() as hooks:
        for path, module in model.named_modules():
            for number, item in enumerate(module) if isinstance(module, nn.ModuleList) else ():
                given = outputs.setdefault(f"{path}.{number}" if path else str(number), [])
                hooks.enter_context(item.register_forward_hook(lambda _m, _a, out, given=given: given.append(out)))
        yield


def _repeated_layer_output(output: Any, rows: int, *_: Any, **__: Any) -> Any:
    """Return a layer's output for one text as output for several rows, copied because it may be written into.

    It replaces the layer's forward, whatever that is called with.
    """
    if isinstance(output, Tensor):
        return output.expand(rows, *output.shape[1:]).clone() if output.ndim >= 3 and len(output) == 1 else output
    if type(output) in (tuple, list):
        return type(output)(_repeated_layer_output(value, rows) for value in output)
    return output


def _start_of_changes(interventions: Sequence[Any], text: Encoded | None) -> Start:
    """Return where a set of changes begins: stack, layer, first token. text: None to begin at token 0."""
    starts: list[tuple[tuple[int, int], int]] = []
    for change in interventions:
        first = 0
        if isinstance(change, Ablate):
            place, part = change.target, change.target.part
            layer = place.layer if isinstance(place, Head) else min(place.layers or (0,))
        else:
            part = change.part
            of_states = isinstance(change, Steer) or change.what == "hidden_states"
            layer = change.state if of_states else int(change.layer)
            # a refusal of given weights names the token, as the pass counts it: there it has to be that of the text
            places = None if isinstance(change, Patch) and change.what == "weights" else change.at
            if text is not None and places is not None:
                first = min(tokens_at("at", text.text, text.tokens, places), default=0)
        starts.append(((1 if part in ("decoder", "cross") else 0, layer), first))
    if not starts:
        return 0, 0, 0
    return *min(place for place, _ in starts), min(first for _, first in starts)


def _same_layer_states(a: Tensor, b: Tensor) -> bool:
    return bool(((a - b).norm(dim=-1) <= SAME * b.norm(dim=-1)).all()) if torch.isfinite(b).all() else False


def ablation_batches_by_layer(starts: Sequence[Start], most: int) -> Iterator[tuple[list[int], Start]]:
    """Yield the numbers of at most `most` sets that run together from token 0, and the first start among them.

    A batch has sets of one layer. If that makes a small batch, sets of the next layers join it: repeating layers for
    them costs less than another pass.
    """
    layers = [(stack, layer, 0) for stack, layer, _ in starts]
    order = sorted(range(len(layers)), key=lambda n: (layers[n], n))
    batch: list[int] = []
    for n in order:
        other = bool(batch) and layers[n] != layers[batch[-1]]
        if len(batch) == most or (other and len(batch) >= most * SMALL):
            yield batch, layers[batch[0]]
            batch = []
        batch.append(n)
    if batch:
        yield batch, layers[batch[0]]


def by_position(starts: Sequence[Start], length: int, depth: int, most: int) -> Iterator[tuple[list[int], Start]]:
    """Yield the numbers of at most `most` sets that run together from their first token on, and where they begin.

    Sets are ordered by layer, and within a layer by token; that order is cut where all passes together compute
    least.
    """
    order = sorted(range(len(starts)), key=lambda n: (starts[n], n))
    # least[n]: the cost of the first n sets in order; cut[n]: where their last batch begins
    least, cut = [0.0], [0]
    for stop in range(1, len(order) + 1):
        best, at, first = math.inf, stop - 1, length
        for start in range(stop - 1, max(-1, stop - 1 - most), -1):
            _, layer, token = starts[order[start]]
            first = min(first, token)
            one = ((stop - start) * (length - first) + PASS_TOKENS) * (depth - min(layer, depth) + 1)
            if least[start] + one < best:
                best, at = least[start] + one, start
        least.append(best)
        cut.append(at)
    ends = [len(order)]
    while ends[-1]:
        ends.append(cut[ends[-1]])
    for stop, start in zip(ends[-2::-1], ends[:0:-1], strict=True):
        numbers = order[start:stop]
        stack, layer, _ = starts[numbers[0]]
        yield numbers, (stack, layer, min(starts[n][2] for n in numbers))
