"""Follow hand-written attention from the scores through the softmax to the product with the values.

    scores → softmax → dropout, mask, cast, view … → matmul, @, bmm, einsum, or (weights[..., None] * values).sum

Each tensor on the way has a `Track`, which identifies the axis of the softmax. If a product with such weights is
attention (`judge`), it is passed to `claim`. If none of its products is attention, the softmax stores the reason.

The decision uses only the product's axes. Each axis of the two factors and the result has a letter, as in einsum. No
values are read, so the decision doesn't depend on data and needn't synchronize with a GPU.
"""

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.ablated_call import CallAblations
from regard.capture.watching.call_sites import CallSites, Site

PRODUCTS = frozenset(("matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "mv", "baddbmm", "einsum"))

Axis = str | None  # "key": the softmax's axis. "learned": an axis produced by a learned matrix
Axes = tuple[Axis, ...]


class Product(NamedTuple):
    """A product of two factors, with letters for their axes and for the result's."""

    factors: tuple[Tensor, Tensor]
    letters: tuple[list[str], list[str]]
    result: list[str]


class Layout(NamedTuple):
    """The roles of the axes of weights: letters of batch and head axes, of query axes, and of the key axis."""

    axes: list[str]
    batch: list[str]
    query: list[str]
    key: str

    @property
    def order(self) -> list[int]:
        """Return the axes in the order batch, query, key. Broadcast axes of size 1 are last."""
        named = [*self.batch, *self.query, self.key]
        return [self.axes.index(letter) for letter in (*named, *(x for x in self.axes if x not in named))]

    def as_map(self, weights: Tensor, heads: int | None = None) -> Tensor:
        """Return weights in a map's layout, with up to 4 axes. heads: their number if batch and heads share an axis."""
        mapped = weights.ndim - len(self.axes)  # axes of vmap come first
        weights = weights.permute(*range(mapped), *(mapped + n for n in self.order))
        lead = weights.shape[: mapped + len(self.batch)]
        if heads and len(lead) == 1:
            lead = torch.Size((lead[0] // heads, heads))
        queries = weights.shape[mapped + len(self.batch) : mapped + len(self.batch) + len(self.query)]
        keys = weights.shape[mapped + len(self.batch) + len(self.query)]
        weights = weights.reshape(*lead, math.prod(queries), keys)
        return weights.flatten(0, weights.ndim - 4) if weights.ndim > 4 else weights

    def as_factor(self, weights: Tensor, factor: Tensor) -> Tensor:
        """Undo `as_map`: return the weights in the layout of the factor."""
        order = self.order
        permuted = weights.reshape([factor.shape[n] for n in order])
        return permuted.permute([order.index(n) for n in range(len(order))])


def product_of(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Product | None:
    """Return the factors and letters of a call to one of `PRODUCTS`, or None if it doesn't have two factors."""
    operands = [*args, *kwargs.values()]
    if name == "einsum":
        equation, *operands = operands
        if len(operands) == 1 and isinstance(operands[0], list | tuple):
            operands = list(operands[0])
    operands = operands[1:3] if name == "baddbmm" else operands[::-1] if name == "__rmatmul__" else operands
    if len(operands) != 2 or not all(isinstance(factor, Tensor) and factor.ndim for factor in operands):
        return None
    a, b = operands
    if name == "einsum":
        return _einsum_product(equation, a, b) if isinstance(equation, str) else None
    lead = [chr(ord("a") + n) for n in range(max(a.ndim, b.ndim, 2) - 2)]
    leads = [lead[len(lead) + 2 - factor.ndim :] if factor.ndim > 2 else [] for factor in (a, b)]
    rows, cols = ["L"] * (a.ndim > 1), ["E"] * (b.ndim > 1)
    return Product((a, b), ([*leads[0], *rows, "S"], [*leads[1], "S", *cols]), [*lead, *rows, *cols])


def _einsum_product(equation: str, a: Tensor, b: Tensor) -> Product | None:
    inputs, _, result = equation.replace(" ", "").partition("->")
    parts = inputs.split(",")
    if not result or len(parts) != 2:
        return None
    unnamed = [
        t.ndim - len(part.replace("...", "")) if "..." in part else 0 for part, t in zip(parts, (a, b), strict=True)
    ]
    dots = [chr(192 + n) for n in range(max(unnamed))]  # characters that can't occur in an equation
    left, right = (
        list(part.replace("...", "".join(dots[len(dots) - n :]))) for part, n in zip(parts, unnamed, strict=True)
    )
    return Product((a, b), (left, right), list(result.replace("...", "".join(dots))))


def sum_of_terms(weights: Tensor, value: Tensor, ndim: int, dim: int) -> Product:
    """Describe `(weights * value).sum(dim)` as a product. ndim: the number of axes before the sum."""
    axes = [chr(ord("a") + n) for n in range(ndim)]
    summed = axes[dim % ndim]

    def letters(factor: Tensor) -> list[str]:
        letters_of = axes[ndim - factor.ndim :]
        return [f"_{letter}" if size == 1 else letter for letter, size in zip(letters_of, factor.shape, strict=True)]

    return Product(
        (weights, value), (letters(weights), letters(value)), [letter for letter in axes if letter != summed]
    )


def judge(axes: Axes, product: Product, n: int, *, learned_scores: bool, learned_value: bool) -> Layout | str:
    """Return the layout of weights in a product if it is attention, else the reason why it isn't.

    axes: of the weights, which are factor n. learned_scores: whether a learned matrix produces the softmax's axis.
    learned_value: whether the other factor is a parameter and the scores aren't a product of queries and keys.
    """
    letters, other, result = product.letters[n], product.letters[1 - n], product.result
    key = letters[axes.index("key")] if "key" in axes else None
    if key is None or key in result or key not in other:
        return "no sum runs over the axis of the softmax"
    if not any(letter in result and letter not in letters for letter in other):
        return "numbers are summed, no vectors"
    if learned_scores:
        return "its scores are a learned matrix's outputs: a gate, a router or a classifier"
    if learned_value:
        return "learned vectors are mixed"
    batch = [letter for letter in letters if letter != key and letter in other]
    query = [letter for letter in letters if letter != key and letter not in batch and letter in result]
    while len(query) > 1 and len(batch) < 2:  # heads with shared values
        batch.append(query.pop(0))
    return Layout(letters, batch, query, key)


class View:
    """A view of a tensor whose axes are known. It stores shapes and strides, but not the tensors."""

    def __init__(self, of: Any, function: Callable[..., Any], n: int, args: Any, kwargs: Any, view: Tensor) -> None:
        """Describe a view that function(*args, **kwargs) returned. of: the `Track` of argument n."""
        source = args[n]
        self.of, self.shape, self.strides = of, source.shape, source.stride()
        self.view_shape, self.view_strides = view.shape, view.stride()
        self.call: Any = None
        if not (source.is_contiguous() and view._is_view()):  # if it may be a copy, strides aren't enough
            self.call = function, (*args[:n], None, *args[n + 1 :]), n, kwargs
            if any(isinstance(argument, Tensor) for argument in self.call[1]):
                self._make_again()

    def axes(self) -> Axes:
        """Return the role of each axis of the view, found by its stride."""
        if self.call is not None:
            self._make_again()
        known = [axis for axis in zip(self.strides, self.shape, self.of.axes, strict=True) if axis[1] > 1]
        result: list[Axis] = []
        for stride, size in zip(self.view_strides, self.view_shape, strict=True):
            over = [(n, axis) for step, n, axis in known if stride and step <= stride < step * n and size > 1]
            result.append(over[0][1] if over and size <= over[0][0] else None)
        return tuple(result)

    def _make_again(self) -> None:
        """Repeat the view on a contiguous meta tensor. If this fails, no axis is known."""
        function, args, n, kwargs = self.call
        self.call, probe = None, torch.empty(self.shape, device="meta")
        self.strides = probe.stride()
        try:
            view = function(*args[:n], probe, *args[n + 1 :], **kwargs)
            self.view_shape, self.view_strides = view.shape, view.stride()
        except Exception:  # for example, it mixes devices or has several results
            self.view_strides = (0,) * len(self.view_shape)


SOFTMAXES = frozenset(["softmax", "_softmax", "gumbel_softmax", "log_softmax"])
LEARNED_AXIS = {"linear": -1, "addmm": -1, "conv1d": -2, "conv2d": -3, "conv3d": -4}  # a learned matrix produces it
SPLITS = frozenset(["chunk", "split", "unbind", "tensor_split", "split_with_sizes"])
DROPOUTS = frozenset(["dropout", "dropout_", "alpha_dropout", "feature_dropout"])
# Effects on axes: ELEMENTWISE keeps them, BROADCASTING may add leading axes, VIEWS rearranges them.
ELEMENTWISE = frozenset([
    "to", "float", "double", "half", "bfloat16", "type", "type_as", "contiguous", "clone", "nan_to_num", "cpu",
    "cuda", "detach", "exp", "relu", "clamp", "_to_copy", "requires_grad_", "tanh", "leaky_relu",
])  # fmt: skip
TIMES = frozenset(["mul", "__mul__", "__rmul__", "multiply"])
DIVISIONS = frozenset(["div", "__truediv__", "true_divide", "divide", "div_", "__itruediv__"])
BROADCASTING = TIMES | DIVISIONS | frozenset([
    "mul_", "__imul__", "add", "__add__", "__radd__", "add_", "__iadd__", "sub", "__sub__", "sub_", "__isub__",
    "masked_fill", "masked_fill_", "where", "tril", "triu",
])  # fmt: skip
VIEWS = frozenset([
    "view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "unflatten", "movedim", "moveaxis",
    "swapaxes", "swapdims", "expand", "expand_as", "broadcast_to", "t", "__getitem__", "narrow", "select", "__get__",
    "view_as", "reshape_as",
])  # fmt: skip
PREPARED = PRODUCTS | DROPOUTS | {"sum"}  # inspected before they run
FOLLOWED = PREPARED | SOFTMAXES | SPLITS | ELEMENTWISE | BROADCASTING | VIEWS | frozenset(LEARNED_AXIS)


@dataclass(eq=False)
class Softmax:
    """One softmax of the program, and the use of its result.

    where: file:line. learned: whether a learned matrix produces its axis. of_product: whether its scores are
    queries · keys. reason: why it isn't attention. ablations: looked up once for all products of its weights.
    """

    path: str
    where: str
    shape: tuple[int, ...]
    kernel: str
    learned: bool
    of_product: bool
    claimed: bool = False
    reason: str = ""
    ablations: CallAblations | None = None


class Track:
    """The known properties of a tensor. kind: one of KINDS.

    known_axes: the role of each axis, or the view that determines it. softmax: of weights and tensors made from them.
    learned, of_product: of scores, as in `Softmax`. log: from log_softmax. undropped: the weights before dropout.
    exponential: links an exp and its sums. row_axis: the summed axis, from the right. factors: of terms.
    """

    KINDS = ("scores", "exp", "weights", "row sums", "terms")  # terms: weights · values, to be summed
    softmax: Softmax
    learned = of_product = log = False
    undropped: Tensor | None = None
    exponential: object = None
    row_axis = 0
    factors: "tuple[Track, Tensor, Tensor]"

    def __init__(self, kind: str, known_axes: "Axes | View", **known: Any) -> None:
        self.kind, self.known_axes = kind, known_axes
        vars(self).update(known)

    def but(self, **changes: Any) -> "Track":
        """Return a copy of the track with these changes."""
        track = object.__new__(Track)
        track.__dict__ = self.__dict__ | changes
        return track

    @property
    def axes(self) -> Axes:
        """Return the role of each axis of the tracked tensor."""
        if isinstance(self.known_axes, View):
            self.known_axes = self.known_axes.axes()
        return self.known_axes


# Takes (softmax, weights, weights without dropout or None, values, layout) and returns the weights to multiply by.
Claim = Callable[[Softmax, Tensor, Tensor | None, Tensor, Layout], Tensor]
Prepared = tuple[Any, Any, Track | None]  # (args, kwargs, track of the result)


class SoftmaxTracker:
    """Follow the tensors of one block. softmaxes: only the last per line and shape, to limit memory."""

    def __init__(self, sites: CallSites, claim: Claim) -> None:
        self.softmaxes: dict[tuple[Site, tuple[int, ...]], Softmax] = {}
        self._sites, self._claim = sites, claim
        self._tracks: dict[int, tuple[weakref.ref[Tensor], Track]] = {}

    def prepare(self, name: str, args: Any, kwargs: Any) -> Prepared:
        """Inspect a call to a `PREPARED` function before it runs. Returns its arguments and the track of its result."""
        if name in DROPOUTS:
            return args, kwargs, self._before_dropout(name, args, kwargs)
        if name == "sum":
            return self._before_sum(args, kwargs)
        product = product_of(name, args, kwargs)
        if product is None:
            return args, kwargs, None
        for n in range(2):
            track = self.track_of(product.factors[n])
            if track is not None and track.kind == "weights" and not track.log:
                return self._before_weighted_sum(track, product, n, args, kwargs)
        learned = [is_learned(factor) for factor in product.factors]
        letters = product.letters[0] if learned[0] else product.letters[1] if learned[1] else []
        axes = tuple("learned" if letter in letters else None for letter in product.result)
        return args, kwargs, Track("scores", axes, learned=any(learned), of_product=not any(learned))

    def follow(self, function: Callable[..., Any], name: str, args: Any, kwargs: Any, result: Any) -> None:
        """Note the track of a function's result, derived from its arguments."""
        if name in SOFTMAXES:
            scores = args[0] if args else kwargs["input"]
            dim = kwargs.get("dim", args[1] if len(args) > 1 and name != "gumbel_softmax" else None)
            if dim is None:  # the defaults of gumbel_softmax and of F.softmax
                dim = -1 if name == "gumbel_softmax" else 0 if scores.ndim in (0, 1, 3) else 1
            self._note_weights(self.track_of(scores), is_learned(scores), dim, result, log=name == "log_softmax")
        elif name in LEARNED_AXIS:
            before, axis = self.track_of(args[0]) if args else None, result.ndim + LEARNED_AXIS[name]
            mixes = before is not None and before.kind == "weights" and all(size == 1 for size in args[1].shape[2:])
            if before is not None and mixes and before.axes[axis] != "key":  # heads are mixed
                axes = tuple(None if n == axis else kind for n, kind in enumerate(before.axes))
                self.note(result, before.but(known_axes=axes, undropped=None))
            else:
                axes = tuple("learned" if n == axis else None for n in range(result.ndim))
                self.note(result, Track("scores", axes, learned=True))
        elif isinstance(result, Tensor):
            self._follow_tensor(function, name, args, kwargs, result)
        elif name in SPLITS and self.track_of(args[0]) is not None:
            for part in result:
                self._follow_tensor(function, "narrow", args, kwargs, part)

    def note(self, tensor: Tensor, track: Track) -> None:
        """Store the track of a tensor until the tensor is deleted."""
        key, tracks = id(tensor), self._tracks
        tracks[key] = weakref.ref(tensor, lambda _: tracks.pop(key, None)), track

    def track_of(self, tensor: object) -> Track | None:
        """Return the track of a tensor, or None for any other object."""
        noted = self._tracks.get(id(tensor))
        return noted[1] if noted is not None and noted[0]() is tensor else None

    def _note_weights(
        self, scores: Track | None, of_parameter: bool, dim: int, result: Tensor, *, log: bool = False
    ) -> None:
        """Note weights, a tensor that sums to 1 along an axis. scores: the track of their scores."""
        site = self._sites.find() if result.ndim else None
        if site is None:
            return
        kernel, learned, of_product = "softmax", of_parameter, False
        if scores is not None and scores.kind in ("scores", "exp") and len(scores.axes) == result.ndim:
            learned, of_product = learned or scores.axes[dim] == "learned", scores.of_product
            kernel = "softmax(q·k)" if of_product else "softmax(learned)" if scores.learned else kernel
        softmax = Softmax(*site, tuple(result.shape), kernel, learned, of_product)
        self.softmaxes[site, softmax.shape] = softmax
        axes = tuple("key" if n == dim % result.ndim else None for n in range(result.ndim))
        self.note(result, Track("weights", axes, softmax=softmax, log=log))

    def _before_dropout(self, name: str, args: Any, kwargs: Any) -> Track | None:
        """Return the track of a dropout's result, which includes the weights before dropout."""
        track = self.track_of(args[0]) if args else None
        if track is None or track.kind != "weights" or track.undropped is not None:
            return track
        if not kwargs.get("training", args[2] if len(args) > 2 else True):
            return track
        in_place = name == "dropout_" or kwargs.get("inplace", len(args) > 3 and args[3])
        return track.but(undropped=args[0].detach().clone() if in_place else args[0].detach())

    def _before_sum(self, args: Any, kwargs: Any) -> Prepared:
        """Inspect a sum before it runs: of weights · values, or of weights or exponentials, for normalization."""
        track = self.track_of(args[0]) if args else None
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        dim = dim[0] if isinstance(dim, list | tuple) and len(dim) == 1 else dim
        if track is None or not isinstance(dim, int):
            return args, kwargs, None
        if track.kind == "terms":
            weighted, weights, value = track.factors
            product = sum_of_terms(weights, value, args[0].ndim, dim)
            (new,), _, _ = self._before_weighted_sum(weighted, product, 0, (weights,), {})
            return (args if new is weights else (new * value, *args[1:])), kwargs, None
        if track.kind in ("weights", "exp"):
            axis = dim % args[0].ndim - args[0].ndim
            return args, kwargs, track.but(kind="row sums", row_axis=axis, undropped=None)
        return args, kwargs, None

    def _before_weighted_sum(self, track: Track, product: Product, n: int, args: Any, kwargs: Any) -> Prepared:
        """Inspect a product of weights, factor n, with another factor before it runs. Claim it if it is attention."""
        softmax, weights, other = track.softmax, product.factors[n], product.factors[1 - n]
        learned_value = is_learned(other) and not softmax.of_product
        layout = judge(track.axes, product, n, learned_scores=softmax.learned, learned_value=learned_value)
        if isinstance(layout, Layout):
            new = self._claim(softmax, weights, track.undropped, other, layout)
            if new is not weights:
                args, kwargs = _replaced(args, weights, new), {k: _replaced(v, weights, new) for k, v in kwargs.items()}
            return args, kwargs, None
        softmax.reason = softmax.reason or layout
        key = product.letters[n][track.axes.index("key")] if "key" in track.axes else ""
        if key not in product.result or key in product.letters[1 - n]:
            return args, kwargs, None
        axes = tuple("key" if letter == key else None for letter in product.result)  # heads are mixed
        return args, kwargs, track.but(known_axes=axes, undropped=None)

    def _follow_tensor(self, function: Callable[..., Any], name: str, args: Any, kwargs: Any, result: Tensor) -> None:
        tracks = self._tracks  # inlined `track_of`, because this runs for every followed function
        tracked = [
            (n, noted[1])
            for n, arg in enumerate(args)
            if (noted := tracks.get(id(arg))) is not None and noted[0]() is arg
        ]
        if not tracked:
            if name == "exp":
                self.note(result, Track("exp", (None,) * result.ndim, exponential=object()))
            return
        n, track = next((pair for pair in tracked if pair[1].kind in ("weights", "exp")), tracked[0])
        if name in VIEWS and track.undropped is None and track.kind != "terms":
            rows = track.kind == "row sums"
            self.note(result, track if rows else track.but(known_axes=View(track, function, n, args, kwargs, result)))
            return
        source, lead = args[n], (None,) * (result.ndim - args[n].ndim)
        same = result.shape[len(lead) :] == source.shape
        sums = self.track_of(args[1]) if name in DIVISIONS and len(tracked) == 2 else None
        undropped = None
        if track.undropped is not None:  # do the same to the weights without dropout
            writes = name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))
            plain = track.undropped.clone() if writes else track.undropped
            undropped = function(*(plain if i == n else argument for i, argument in enumerate(args)), **kwargs)
        if track.kind in ("row sums", "terms"):
            return
        if sums is not None and sums.kind == "row sums" and _shared(sums) is _shared(track):
            if track.kind == "exp":
                self._note_weights(track, False, sums.row_axis, result)
            else:
                axes = tuple("key" if i == result.ndim + sums.row_axis else None for i in range(result.ndim))
                self.note(result, track.but(known_axes=axes, undropped=None))
        elif name == "exp" and track.kind == "scores":
            self.note(result, track.but(kind="exp", exponential=object()))
        elif name in ELEMENTWISE and same:
            self.note(result, track.but(undropped=undropped, log=track.log and name != "exp"))
        elif name in VIEWS:
            view = View(track, function, n, args, kwargs, result)
            self.note(result, track.but(known_axes=view, undropped=undropped))
        elif name in BROADCASTING and same:
            self.note(result, track.but(known_axes=(*lead, *track.axes), undropped=undropped))
        elif name in TIMES and track.kind == "weights" and isinstance(args[1 - n], Tensor):
            self.note(result, Track("terms", (*lead, *track.axes), factors=(track, source, args[1 - n])))


def is_learned(tensor: Tensor) -> bool:
    """Return whether a tensor is a parameter or a view of one."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def _shared(track: Track) -> object:
    """Return the object that links weights or an exp with their sums."""
    return track.exponential or track.softmax


def _replaced(arguments: Any, old: Tensor, new: Tensor) -> Any:
    """Replace a tensor by another in arguments, including nested lists."""
    if isinstance(arguments, list | tuple):
        return type(arguments)(_replaced(argument, old, new) for argument in arguments)
    return new if arguments is old else arguments
