"""Follow attention that is written by hand: from scores over the softmax to the product with the values.

    scores → softmax → dropout, mask, cast, view … → matmul, @, bmm, einsum, or (weights[..., None] * values).sum

Each tensor on the way has a `Track`, which says which of its axes is the softmax's. A product of such weights is handed
to `claim` if it is attention (`weighted_sums.judge`). The softmax keeps the reason if none of its products is.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torch import Tensor, nn

from regard.attention.ablated_call import CallAblations
from regard.capture.watching.call_sites import CallSites
from regard.capture.watching.seen import PassedOver
from regard.capture.watching.weighted_sums import (
    PRODUCTS,
    Axes,
    Layout,
    Product,
    axes_of_view,
    judge,
    product_of,
    sum_of_terms,
)

SOFTMAXES = frozenset(("softmax", "_softmax", "gumbel_softmax", "log_softmax"))
LEARNED_AXIS = {"linear": -1, "addmm": -1, "conv1d": -2, "conv2d": -3, "conv3d": -4}  # that a learned matrix makes
SPLITS = frozenset(("chunk", "split", "unbind", "tensor_split", "split_with_sizes"))
DROPOUTS = frozenset(("dropout", "dropout_", "alpha_dropout", "feature_dropout"))
# What these do to the axes of a tensor: ELEMENTWISE leaves them, BROADCASTING may put others before, VIEWS moves them.
ELEMENTWISE = frozenset([
    "to", "float", "double", "half", "bfloat16", "type", "type_as", "contiguous", "clone", "nan_to_num", "cpu",
    "cuda", "detach", "exp", "relu", "clamp", "_to_copy", "requires_grad_", "tanh", "leaky_relu"
])  # fmt: skip
TIMES = frozenset(["mul", "__mul__", "__rmul__", "multiply"])
DIVISIONS = frozenset(["div", "__truediv__", "true_divide", "divide", "div_", "__itruediv__"])
BROADCASTING = TIMES | DIVISIONS | frozenset([
    "mul_", "__imul__", "add", "__add__", "__radd__", "add_", "__iadd__", "sub", "__sub__", "sub_", "__isub__",
    "masked_fill", "masked_fill_", "where", "__setitem__", "tril", "triu"
])  # fmt: skip
VIEWS = frozenset([
    "view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "unflatten", "movedim",
    "moveaxis", "swapaxes", "swapdims", "expand", "expand_as", "broadcast_to", "t", "__getitem__", "narrow",
    "select", "__get__", "view_as", "reshape_as"
])  # fmt: skip
PREPARED = PRODUCTS | DROPOUTS | {"sum"}
FOLLOWED = PREPARED | SOFTMAXES | SPLITS | ELEMENTWISE | BROADCASTING | VIEWS | frozenset(LEARNED_AXIS)


@dataclass(eq=False)
class Softmax:
    """One softmax of the program, and what became of its result.

    learned_scores: a learned matrix makes its axis. of_product: its scores are a product of queries and keys.
    reason: why it is no attention. ablations: what is done to it, found out once for all products of its weights.
    """

    path: str
    where: str
    shape: tuple[int, ...]
    kernel: str
    learned_scores: bool
    of_product: bool
    claimed: bool = False
    reason: str = ""
    ablations: CallAblations | None = None

    def passed_over(self) -> PassedOver:
        """Return what is listed of a softmax that is no attention."""
        return PassedOver(self.path, self.where, self.shape, self.reason or "it is no factor of a sum of vectors")


@dataclass(eq=False)
class Track:
    """What is known of a tensor on the way.

    kind: "scores", "exp" (of scores), "weights", "row sums" (of weights or exp) or "terms" (weights · values, to be
    summed). origin: the softmax, or what an exp and its row sums share. learned, of_product: what scores were made by.
    log: weights of log_softmax. undropped: the weights without dropout. row_axis: that row sums were taken over, from
    the right. factors: of terms.
    """

    kind: Literal["scores", "exp", "weights", "row sums", "terms"]
    axes: Axes
    origin: Softmax | None = None
    learned: bool = False
    of_product: bool = False
    log: bool = False
    undropped: Tensor | None = None
    row_axis: int = 0
    factors: "tuple[Track, Tensor, Tensor] | None" = None
    exponential: object = field(default_factory=object)


# Takes (softmax, weights, weights without dropout or None, values, layout) and returns the weights to multiply by.
Claim = Callable[[Softmax, Tensor, Tensor | None, Tensor, Layout], Tensor]
AfterCall = Callable[[Tensor], None]


class SoftmaxTracker:
    """Follows the tensors of one block. softmaxes: all that were computed, in order."""

    def __init__(self, sites: CallSites, claim: Claim) -> None:
        self.softmaxes: list[Softmax] = []
        self._sites, self._claim = sites, claim
        self._tracks: dict[int, tuple[weakref.ref[Tensor], Track]] = {}

    def prepare(self, name: str, args: Any, kwargs: Any) -> tuple[Any, Any, AfterCall | None]:
        """Look at a call of `PREPARED` before it runs: return its arguments, and what to do with the result."""
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
        return (
            args,
            kwargs,
            lambda result: self.note(result, Track("scores", axes, learned=any(learned), of_product=not any(learned))),
        )

    def follow(self, function: Callable[..., Any], name: str, args: Any, kwargs: Any, result: Any) -> None:
        """Note what is known of a result, from its arguments."""
        if name in SOFTMAXES:
            scores = args[0] if args else kwargs["input"]
            dim = kwargs.get("dim", args[1] if len(args) > 1 and name != "gumbel_softmax" else None)
            if dim is None:  # the default of gumbel_softmax, and that of F.softmax's early days
                dim = -1 if name == "gumbel_softmax" else 0 if scores.ndim in (0, 1, 3) else 1
            track = self.track_of(scores)
            self._begin(track, is_learned(scores), dim, result, log=name == "log_softmax")
        elif name in LEARNED_AXIS:
            before, axis = self.track_of(args[0]) if args else None, result.ndim + LEARNED_AXIS[name]
            if before is not None and before.kind == "weights" and before.axes[-1] != "key" and name == "linear":
                self.note(result, replace(before, axes=(*before.axes[:-1], None), undropped=None))  # heads are mixed
            else:
                axes = tuple("learned" if n == axis else None for n in range(result.ndim))
                self.note(result, Track("scores", axes, learned=True))
        elif not self._tracks:
            if name == "exp":
                self.note(result, Track("exp", (None,) * result.ndim))
        elif isinstance(result, Tensor):
            self._follow(function, name, args, kwargs, result)
        elif name in SPLITS and self.track_of(args[0]) is not None:
            for part in result:
                self._follow(function, "narrow", args, kwargs, part)

    def note(self, tensor: Tensor, track: Track) -> None:
        """Remember what is known of a tensor, as long as it lives."""
        key, tracks = id(tensor), self._tracks
        tracks[key] = weakref.ref(tensor, lambda _: tracks.pop(key, None)), track

    def track_of(self, tensor: Any) -> Track | None:
        """Return what is known of a tensor; None for anything else."""
        noted = self._tracks.get(id(tensor))
        return noted[1] if noted is not None and noted[0]() is tensor else None

    def _begin(self, scores: Track | None, of_parameter: bool, dim: int, result: Tensor, *, log: bool = False) -> None:
        """Note weights: a tensor that sums to 1 along an axis. scores: what is known of those they were made of."""
        site = self._sites.find() if result.ndim else None
        if site is None:
            return
        kernel, learned, of_product = "softmax", of_parameter, False
        if scores is not None and scores.kind in ("scores", "exp") and len(scores.axes) == result.ndim:
            learned = learned or scores.axes[dim] == "learned"
            of_product = scores.of_product
            kernel = "softmax(q·k)" if of_product else "softmax(learned)" if scores.learned else kernel
        softmax = Softmax(*site, tuple(result.shape), kernel, learned, of_product)
        self.softmaxes.append(softmax)
        axes = tuple("key" if n == dim % result.ndim else None for n in range(result.ndim))
        self.note(result, Track("weights", axes, softmax, log=log))

    def _before_dropout(self, name: str, args: Any, kwargs: Any) -> AfterCall | None:
        """Dropout of weights: keep those without it."""
        track = self.track_of(args[0]) if args else None
        if track is None:
            return None
        training = kwargs.get("training", args[2] if len(args) > 2 else True)
        undropped = track.undropped
        if track.kind == "weights" and training and undropped is None:
            in_place = name == "dropout_" or kwargs.get("inplace", len(args) > 3 and args[3])
            undropped = args[0].detach().clone() if in_place else args[0].detach()
        return lambda result: self.note(result, replace(track, undropped=undropped))

    def _before_sum(self, args: Any, kwargs: Any) -> tuple[Any, Any, AfterCall | None]:
        """A sum: of weights · values, or of weights, which are then divided by it."""
        track = self.track_of(args[0]) if args else None
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        dim = dim[0] if isinstance(dim, list | tuple) and len(dim) == 1 else dim
        if track is None or not isinstance(dim, int):
            return args, kwargs, None
        if track.kind == "terms" and track.factors is not None:
            weighted, weights, value = track.factors
            product = sum_of_terms(weights, value, args[0].ndim, dim)
            (new, *_), _, _ = self._before_weighted_sum(weighted, product, 0, (weights,), {})
            return (args if new is weights else (new * value, *args[1:])), kwargs, None
        if track.kind in ("weights", "exp"):
            sums = replace(track, kind="row sums", axes=(), row_axis=dim % args[0].ndim - args[0].ndim, undropped=None)
            return args, kwargs, lambda result: self.note(result, sums)
        return args, kwargs, None

    def _before_weighted_sum(
        self, track: Track, product: Product, n: int, args: Any, kwargs: Any
    ) -> tuple[Any, Any, AfterCall | None]:
        """A product of weights, factor n, with something else: claim it if it is attention."""
        softmax, weights, other = track.origin, product.factors[n], product.factors[1 - n]
        assert softmax is not None
        mine = product.letters[n]
        learned_value = is_learned(other) and not softmax.of_product
        layout = judge(
            track.axes, mine, product.letters[1 - n], product.result,
            learned_scores=softmax.learned_scores, learned_value=learned_value,
        )  # fmt: skip
        if isinstance(layout, str):
            softmax.reason = softmax.reason or layout
            key = mine[track.axes.index("key")] if "key" in track.axes else ""
            if key not in product.result or key in product.letters[1 - n]:
                return args, kwargs, None
            axes = tuple("key" if letter == key else None for letter in product.result)  # heads are mixed
            return args, kwargs, lambda result: self.note(result, replace(track, axes=axes, undropped=None))
        new = self._claim(softmax, weights, track.undropped, other, layout)
        if new is not weights:
            args, kwargs = _replaced(args, weights, new), {k: _replaced(v, weights, new) for k, v in kwargs.items()}
        return args, kwargs, None

    def _follow(self, function: Callable[..., Any], name: str, args: Any, kwargs: Any, result: Tensor) -> None:
        tracked = [(n, track) for n, arg in enumerate(args) if (track := self.track_of(arg)) is not None]
        if not tracked:
            if name == "exp":
                self.note(result, Track("exp", (None,) * result.ndim))
            return
        n, track = next((pair for pair in tracked if pair[1].kind in ("weights", "exp")), tracked[0])
        source, target = args[n], args[0] if name == "__setitem__" else result
        same = target.shape[max(0, target.ndim - source.ndim) :] == source.shape

        def again() -> Tensor | None:
            """Do the same to the weights without dropout."""
            if track.undropped is None or target is not result:
                return None
            changed: Tensor = function(*(track.undropped if i == n else arg for i, arg in enumerate(args)), **kwargs)
            return changed

        if track.kind == "row sums":
            if name in VIEWS:
                self.note(result, track)
        elif name in DIVISIONS and len(tracked) == 2 and self._normalises(track, self.track_of(args[1])):
            sums = self.track_of(args[1])
            assert sums is not None
            if track.kind == "exp":
                self._begin(track, False, sums.row_axis, result)
            else:
                axes = tuple("key" if i == result.ndim + sums.row_axis else None for i in range(result.ndim))
                self.note(result, replace(track, axes=axes, undropped=None))
        elif track.kind == "terms":
            pass
        elif name in ELEMENTWISE and same:
            if name == "exp" and track.kind == "scores":
                self.note(result, replace(track, kind="exp", exponential=object()))
            else:
                self.note(result, replace(track, undropped=again(), log=track.log and name != "exp"))
        elif name in VIEWS:
            axes_of_result = axes_of_view(function, args, kwargs, source, track.axes, result)
            if axes_of_result is not None:
                self.note(result, replace(track, axes=axes_of_result, undropped=again()))
        elif name in BROADCASTING and same:
            self.note(
                target, replace(track, axes=(None,) * (target.ndim - source.ndim) + track.axes, undropped=again())
            )
        elif name in TIMES and track.kind == "weights" and isinstance(args[1 - n], Tensor):
            axes = (None,) * (result.ndim - source.ndim) + track.axes
            self.note(result, Track("terms", axes, track.origin, factors=(track, source, args[1 - n])))

    @staticmethod
    def _normalises(track: Track, sums: Track | None) -> bool:
        """Whether these are the row sums of what they divide."""
        if sums is None or sums.kind != "row sums":
            return False
        same = track.origin is sums.origin if track.kind == "weights" else track.exponential is sums.exponential
        return same and track.kind in ("weights", "exp")


def is_learned(tensor: Tensor) -> bool:
    """Whether a tensor is a parameter or a view of one."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def _replaced(arguments: Any, old: Tensor, new: Tensor) -> Any:
    """Put a tensor in the place of another in arguments, also in a list of them."""
    if isinstance(arguments, list | tuple):
        return type(arguments)(_replaced(argument, old, new) for argument in arguments)
    return new if arguments is old else arguments
