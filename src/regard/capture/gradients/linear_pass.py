"""Run a forward pass as a linear function of the vectors that components add to the residual stream.

Each tensor of the pass has one of three kinds:

    linear     a linear function of leaves (outputs of embeddings, attention, feed-forward layers, and biases)
    other      a nonlinear function of linear tensors: a norm's statistics, a gate, a feed-forward layer's output
    constant   independent of linear tensors: weights, rotary angles, masks

These are the results of each operation (`operations` lists the operations):

    operation                                      result
    ---------------------------------------------  ------------------------------------------------------------------
    an embedding look-up                           a leaf
    attention                                      a leaf, its context, later split by source with weights and values
    linear + other, linear + constant              linear; the second term is a leaf: feed-forward or bias
    linear x constant, W linear + b                linear; b is a leaf
    linear x other                                 linear if the factor is held fixed: one number per vector (a norm's
                                                   statistic), or a gate of attention's output; else other
    a norm                                         linear with fixed statistics; its bias is a leaf
    an activation between the last layer and the   linear: each component times f(x) / x, which is held fixed
    logits of a classifier
    anything else that reads a linear tensor       other, with the operation's name

So a linear tensor is the sum of its gradient by each leaf times that leaf. `score_path` uses only this property.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from regard.attention.attention_map import AttentionMap
from regard.attention.recording import current_call_path
from regard.capture import operations
from regard.capture.interventions.names import CallId, CallNumbering
from regard.capture.operations import storage_of
from regard.capture.state import Capture

Kind = Literal["token", "position", "segment", "attention", "feed-forward", "bias", "final bias"]


@dataclass(eq=False)
class Leaf:
    """The output that one component added to the residual stream. layer: its layer, None outside layers.

    sequence: the number of the sequence of ids that was looked up last. For attention, tensor is the context,
    (1, H, L, E), with its weights and value. cross: whether it is cross-attention.
    """

    kind: Kind
    layer: int | None
    sequence: int
    tensor: Tensor
    weights: AttentionMap | None = None
    value: Float[Tensor, "1 G S E"] | None = None
    cross: bool = False


class ReachedError(Exception):
    """Raised to end a pass at the wanted attention call, because later operations aren't needed."""


class LinearPass(operations.OperationMode):
    """Create leaves and keep tensors computed from them linear, up to one attention call or the end of the pass.

    ids: the model's token ids. wanted: the call, None for the whole pass. leaves: in order of creation. query,
    key: of the wanted call, (1, H, L, D) and (1, G, S, D), None before it is reached.
    """

    def __init__(
        self, ids: list[Int[Tensor, "1 _"]], wanted: CallId | None, numbering: CallNumbering, capture: Capture
    ) -> None:
        super().__init__()
        self.wanted, self.leaves = wanted, list[Leaf]()
        self.query: Tensor | None = None
        self.key: Tensor | None = None
        self.spoiled: str | None = None
        self.holds_activations = False  # in a classifier's head, see the table above
        self._ids, self._numbering, self._capture = ids, numbering, capture
        self._others = WeakTensorKeyDictionary()  # "other" tensors -> the nonlinear operation
        self._written: dict[int, tuple[Tensor, str]] = {}  # storages with "other" values; tensors kept alive
        self._attended = WeakTensorKeyDictionary()  # linear tensors that depend only on attention contexts
        self._own: set[int] = set()  # ids of the leaves' tensors, which are kept alive
        self._calls: Counter[str] = Counter()
        self._call: CallId | None = None
        self._read: set[int] = set()  # sequences of ids that were looked up
        self._passed: set[tuple[int, bool]] = set()  # (sequence, whether in a layer) of all leaves so far

    def is_linear(self, tensor: Tensor) -> bool:
        """Return whether a tensor is a linear function of leaves. Parameters that require gradients aren't."""
        return tensor.requires_grad and (not tensor.is_leaf or id(tensor) in self._own)

    def reason(self, tensor: Tensor) -> str | None:
        """Return the operation that made a tensor "other", or None for other kinds."""
        reason: str | None = self._others.get(tensor)
        if reason is None and (written := self._written.get(storage_of(tensor))) is not None:
            reason = written[1]
        return reason

    def before(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Stop the pass at the wanted attention call, or prepare any other call to run without gradients."""
        with torch._C.DisableTorchFunction():
            path = current_call_path()
            self._call = self._numbering(path, self._calls[path])
            self._calls[path] += 1
            if self.wanted is not None and self._call == self.wanted:
                self.query, self.key = query, key
                raise ReachedError
            return query.detach(), key.detach(), value.detach()

    def after(self, weights: AttentionMap, value: Tensor, output: Tensor) -> Tensor:
        """Return the context of an attention call as a leaf."""
        with torch._C.DisableTorchFunction():
            leaf = self._make_leaf("attention", output)
            entry = self.leaves[-1]
            entry.weights, entry.value = weights, value
            entry.cross = self._call is not None and self._call.part == "cross"
            self._attended[leaf] = True
            return leaf

    def _make_leaf(self, kind: Kind, tensor: Tensor) -> Tensor:
        leaf = tensor.detach().clone().requires_grad_()
        layer = None if self._capture.layer is None else self._capture.layer[1]
        sequence = max(self._read, default=0)
        if kind == "bias" and layer is None and (sequence, True) in self._passed:
            kind = "final bias"
        self._passed.add((sequence, layer is not None))
        self.leaves.append(Leaf(kind, layer, sequence, leaf))
        self._own.add(id(leaf))
        with torch.enable_grad():
            return leaf.clone()  # the model may write into it

    def _operation(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        read = [] if name in operations.LIKE else operations.tensors_within((*args, *kwargs.values()))
        if name in operations.MOVES and name not in operations.JOINS:
            read = read[:1]  # other arguments are positions, shapes or dtypes
        if any(self.is_linear(tensor) for tensor in read):
            result = self._linear_result(func, name, args, kwargs)
            if result is not None:
                results = operations.tensors_within(result)
                for tensor in results:
                    if not tensor.requires_grad:  # detached tensors and indices
                        self._others[tensor] = "detach"
                if all(tensor in self._attended for tensor in read if self.is_linear(tensor)):
                    for tensor in results:
                        self._attended[tensor] = True
                return result
            reason: str | None = name
        else:
            reason = next((cause for tensor in read if (cause := self.reason(tensor)) is not None), None)
        # Views need gradients enabled, because linear values may be written into them later (WRITES).
        with torch.set_grad_enabled(reason is None and not any(tensor.requires_grad for tensor in read)):
            result = func(*args, **kwargs)
        if reason is not None:
            changed = args[0] if operations.operation_writes_in_place(name) and args else None
            if isinstance(changed, Tensor) and self.is_linear(changed):
                self.spoiled = self.spoiled or name
            elif isinstance(changed, Tensor):
                self._written[storage_of(changed)] = changed, reason
            for tensor in operations.tensors_within(result):
                if not self.is_linear(tensor):
                    self._others[tensor] = reason
        elif name == "embedding" and isinstance(result, Tensor) and result.is_floating_point():
            return self._make_leaf(self._embedding_kind(args, kwargs), result)
        return result

    def _linear_result(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Return the result of a linear operation, or None for other operations."""
        with torch.enable_grad():
            if name in operations.MOVES:
                return func(*args, **kwargs)
            if name in operations.JOINS:
                parts = args[0] if args else kwargs["tensors"]
                if any(self.reason(tensor) is not None for tensor in parts):
                    return None
                return func([self._sum_term(tensor, tensor) for tensor in parts], *args[1:], **kwargs)
            if name in operations.WRITES:
                return self._write_linear(func, args, kwargs)
            if name in operations.IN_PLACE:
                return self._write_result(args[0], self._linear_result(func, operations.IN_PLACE[name], args, kwargs))
            if name in operations.SUMS:
                return self._linear_sum(operations.SUMS[name], args, kwargs)
            if name in operations.PRODUCTS or name in operations.QUOTIENTS:
                return self._linear_product(name in operations.QUOTIENTS, args, kwargs)
            if name in operations.MATRIX_PRODUCTS:
                operands = operations.tensors_within((*args, *kwargs.values()))
                if len(operands) == 2 and self._is_times_constant(*operands):
                    return func(*operations.still(args, self.is_linear), **kwargs)
                return None
            if (linear := operations.linear_operation_arguments(name, args, kwargs)) is not None:
                return self._linear_map(*linear)
            if (normed := operations.norm(name, args, kwargs)) is not None:
                if not self.is_linear(normed["input"]):
                    return None
                return self._add_bias(*operations.norm_with_fixed_statistics(name, normed))
            if name in operations.ACTIVATIONS and self.holds_activations and self._capture.layer is None:
                x = args[0].detach()
                return args[0] * torch.where(x == 0, 0, func(x, *args[1:], **kwargs) / x)
            if name in operations.DROPOUTS:
                arguments = dict(zip(("input", "p", "training"), args, strict=False)) | kwargs
                return None if arguments.get("training", True) and arguments.get("p", 0.5) > 0 else args[0]
            if name == "masked_fill" and len(args) == 3 and isinstance(args[2], (int, float)) and args[2] == 0:
                return func(*args)
        return None

    def _write_linear(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Write linear values or zeros into a tensor, for example into an empty one that is filled piece by piece."""
        target, value = args[0], args[-1]
        if kwargs or self.reason(target) is not None:
            return None
        if not (self.is_linear(value) if isinstance(value, Tensor) else value == 0):
            return None
        func(*args)
        return args[0]

    def _write_result(self, target: Tensor, result: Tensor | None) -> Tensor | None:
        """Write a linear result into a tensor, which becomes linear. None if shape or dtype differ."""
        if result is None or result.shape != target.shape or result.dtype != target.dtype:
            return None
        self._others.pop(target, None)
        self._written.pop(storage_of(target), None)
        return target.copy_(result)

    def _linear_sum(self, signs: tuple[int, int], args: Any, kwargs: Any) -> Any:
        if len(args) != 2 or kwargs:
            return None
        first, second = (self._sum_term(term, other) for term, other in (args, args[::-1]))
        return first + second if signs == (1, 1) else first - second if signs == (1, -1) else second - first

    def _sum_term(self, term: Any, other: Any) -> Any:
        """Return a term of a sum if it is linear, else a leaf made from it."""
        if isinstance(term, Tensor) and self.is_linear(term):
            return term
        if not isinstance(term, Tensor):
            term = torch.as_tensor(term, dtype=other.dtype, device=other.device)
        elif not term.is_floating_point():
            term = term.to(other.dtype)
        if self.reason(term) is not None:
            return self._make_leaf("feed-forward", term)
        varies = term.ndim > 1 and term.shape[-2] > 1
        return self._make_leaf("position" if varies and self._capture.layer is None else "bias", term)

    def _add_bias(self, x: Tensor, bias: Tensor | None) -> Tensor:
        return x if bias is None else x + self._make_leaf("bias", bias)

    def _is_times_constant(self, first: Tensor, second: Tensor) -> bool:
        """Return whether one of two tensors is linear and the other constant."""
        is_product = self.is_linear(first) != self.is_linear(second)
        return is_product and self.reason(first) is None and self.reason(second) is None

    def _linear_product(self, divides: bool, args: Any, kwargs: Any) -> Any:
        if len(args) != 2 or kwargs:
            return None
        first, second = args
        x, factor = (first, second) if isinstance(first, Tensor) and self.is_linear(first) else (second, first)
        if isinstance(factor, Tensor) and self.is_linear(factor):  # of two linear factors, keep attention's
            if x is factor or divides:
                return None
            if x not in self._attended:
                x, factor = factor, x
            if x not in self._attended or factor in self._attended:
                return None
        elif isinstance(factor, Tensor) and not (
            self.reason(factor) is None or operations.is_norm_statistic(factor, x) or x in self._attended
        ):  # of "other" factors, only norm statistics and gates of attention's output are held fixed
            return None
        if divides and x is not first:
            return None
        factor = factor.detach() if isinstance(factor, Tensor) else factor
        return x / factor if divides else x * factor

    def _linear_map(self, x: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool) -> Any:
        """Apply a linear map with its bias; None if its input isn't linear or its weight isn't constant."""
        if not self.is_linear(x) or not self._is_times_constant(x, weight):
            return None
        if bias is not None and (self.is_linear(bias) or self.reason(bias) is not None):
            return None
        weight = weight.detach()
        return self._add_bias(x @ weight if transposed else torch.nn.functional.linear(x, weight), bias)

    def _embedding_kind(self, args: Any, kwargs: Any) -> Kind:
        """Return the kind of an embedding look-up: token ids, positions (indices that increase by 1), or segments."""
        index = args[0] if args else kwargs["input"]
        same = [n for n, ids in enumerate(self._ids) if index.shape == ids.shape and torch.equal(index, ids)]
        if same:
            self._read.add(next((n for n in same if n not in self._read), same[0]))
            return "token"
        counts = index.ndim > 0 and index.shape[-1] > 1 and bool((index.diff(dim=-1) == 1).all())
        return "position" if counts else "segment"
