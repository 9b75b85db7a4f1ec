"""Find each attention call's way to the residual stream by the modules that earlier passes of the same model took.

To follow every operation of a pass (`output_path.py`) costs a short text a fifth of its forward pass, and finds the
same modules each time. The second pass of a model notes which they are; later ones of few tokens watch these alone, as
long as the model has the very modules and nobody else's hooks. What is watched is checked in every pass:

    module               gets                                                          gives
    -------------------  ------------------------------------------------------------  -------------------
    the output map, W_O  the very tensor that the attention call gave                  the projection
    the reader           to the bit the state that entered the layer + the projection

Where anything is otherwise, the pass is made again and followed operation by operation, as are all after it.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.capture.operations import storage_of, write_counts_of_tensors
from regard.capture.state import ModuleIndex, of_transformers
from regard.trace.attention_output import AttentionOutput, Norm, UnverifiedOutput

OTHERWISE = "its output did not take the way that it took in earlier passes"


@dataclass(frozen=True)
class KnownOutput:
    """The modules of one attention call: its output map, and what reads the residual with the projection added.

    kind: of the block. A post-norm block's reader is its norm.
    """

    projection: Any  # nn.Linear, or Conv1D of transformers
    reader: nn.Module
    kind: Literal["post-norm", "pre-norm"]

    def output(self, residual: Tensor, projected: Tensor) -> AttentionOutput:
        """What a call's output is, of the tensors of a pass."""
        weight, bias, norm = self.projection.weight.detach(), _detached(self.projection.bias), None
        weight = weight if isinstance(self.projection, nn.Linear) else weight.T
        if self.kind == "post-norm":
            assert isinstance(self.reader, nn.LayerNorm)
            norm = Norm(_detached(self.reader.weight), _detached(self.reader.bias), self.reader.eps)
        return AttentionOutput(self.kind, weight, bias, residual.detach(), projected.detach(), norm, None)


class KnownWatch:
    """Watches the modules that are known in one pass, and takes what attention calls give, in order.

    index: of the model. Its outputs are forgotten where a call's does not take its way.
    """

    def __init__(self, index: ModuleIndex) -> None:
        self.index = index
        self.known: tuple[KnownOutput, ...] = index.outputs or ()
        self._context: Tensor | None = None
        self._seen: list[tuple[Tensor, Tensor | None, tuple[int, ...]]] = []  # residual, projection, write counts
        self._read = 0  # calls whose sum was read as it has to be

    def follow(self, context: Tensor, entered: Tensor | None) -> None:
        """Take what the next attention call gives, and the state that entered its layer."""
        self._context = context
        self._seen.append((context if entered is None else entered, None, ()))

    def projected(self, n: int, _projection: nn.Module, args: Any, output: Any) -> None:
        """Take what call n's output map gives, where it got what the call gave."""
        context, self._context = self._context, None
        if len(self._seen) == n + 1 and context is not None and isinstance(output, Tensor):
            read, residual = args[0], self._seen[n][0]
            if storage_of(read) == storage_of(context) != 0 and read.numel() == context.numel():
                self._seen[n] = residual, output, write_counts_of_tensors(residual, output)

    def read(self, n: int, _reader: nn.Module, args: Any) -> None:
        """Check what call n's reader gets."""
        if len(self._seen) == n + 1 and self._read == n and args:
            residual, projected, _ = self._seen[n]
            if projected is not None and projected.shape == residual.shape:
                self._read += torch.equal(args[0], residual + projected)

    def results(self) -> list[AttentionOutput | UnverifiedOutput]:
        """The outputs of all calls; unverified where one did not take its way."""
        pairs = [(x, y) for x, y, counts in self._seen if y is not None and write_counts_of_tensors(x, y) == counts]
        if not len(self._seen) == len(pairs) == self._read == len(self.known):
            self.index.outputs = ()
            return [UnverifiedOutput(OTHERWISE) for _ in self._seen]
        return [known.output(*tensors) for known, tensors in zip(self.known, pairs, strict=True)]

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Watch the modules inside the block."""
        with ExitStack() as hooks:
            for n, known in enumerate(self.known):
                hooks.enter_context(known.projection.register_forward_hook(partial(self.projected, n)))
                hooks.enter_context(known.reader.register_forward_pre_hook(partial(self.read, n)))
            yield


def known_outputs(
    index: ModuleIndex,
    outputs: Sequence[AttentionOutput | UnverifiedOutput],
    seen: Sequence[tuple[Tensor | None, list[nn.Module]]],
) -> tuple[KnownOutput, ...]:
    """The modules of all calls of a pass that was followed; none where those of a call are not told for sure."""
    places: dict[int, list[Any]] = {}
    for module in index.modules:
        if type(module) is nn.Linear or of_transformers(module, "Conv1D"):
            weight: Any = module.weight
            places.setdefault(storage_of(weight), []).append(module)
    known: list[KnownOutput] = []
    for output, (entered, readers) in zip(outputs, seen, strict=True):
        if not isinstance(output, AttentionOutput) or output.scaling is not None or output.kind == "parallel":
            return ()
        maps = places.get(storage_of(output.weight), [])
        if len(maps) != 1 or not readers or entered is None:
            return ()
        if entered.data_ptr() != output.residual.data_ptr() or entered.shape != output.residual.shape:
            return ()
        reader, norm = readers[0], output.norm
        if output.kind == "post-norm" and not (
            isinstance(reader, nn.LayerNorm)
            and norm is not None
            and (norm.weight is None) == (reader.weight is None)
            and (norm.weight is None or storage_of(norm.weight) == storage_of(reader.weight))
            and norm.eps == reader.eps
        ):
            return ()
        known.append(KnownOutput(maps[0], reader, output.kind))
    each_once = {id(call.projection) for call in known}, {id(call.reader) for call in known}
    return tuple(known) if all(len(ids) == len(known) for ids in each_once) else ()


def _detached(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()


@contextmanager
def readers_noted(index: ModuleIndex, note: Any) -> Iterator[None]:
    """Call note(module, tensor) for what every module without parts gets first, inside the block."""
    with ExitStack() as hooks:
        for module in index.modules:
            if not module._modules:
                hook = module.register_forward_pre_hook(lambda module, args: note(module, args[0]) if args else None)
                hooks.enter_context(hook)
        yield
