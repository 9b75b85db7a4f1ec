"""Follow attention that is written by hand: from scores over the softmax to the product with the values.

    scores → softmax → dropout, mask, cast, view … → matmul, @, bmm, einsum, or (weights[..., None] * values).sum

Each tensor on the way has a `Track`, which says which of its axes is the softmax's. A product of such weights is handed
to `claim` if it is attention (`weighted_sums.judge`). The softmax keeps the reason if none of its products is.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from regard.attention.ablated_call import CallAblations
from regard.capture.watching.call_sites import CallSites, Site
from regard.capture.watching.weighted_sums import PRODUCTS, Axes, Layout, Product, View, judge, product_of, sum_of_terms

SOFTMAXES = frozenset(["softmax", "_softmax", "gumbel_softmax", "log_softmax"])
LEARNED_AXIS = {"linear": -1, "addmm": -1, "conv1d": -2, "conv2d": -3, "conv3d": -4}  # that a learned matrix makes
SPLITS = frozenset(["chunk", "split", "unbind", "tensor_split", "split_with_sizes"])
DROPOUTS = frozenset(["dropout", "dropout_", "alpha_dropout", "feature_dropout"])
# What these do to the axes of a tensor: ELEMENTWISE leaves them, BROADCASTING may put others before, VIEWS moves them.
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
PREPARED = PRODUCTS | DROPOUTS | {"sum"}  # looked at before they run
FOLLOWED = PREPARED | SOFTMAXES | SPLITS | ELEMENTWISE | BROADCASTING | VIEWS | frozenset(LEARNED_AXIS)


@dataclass(eq=False)
class Softmax:
    """One softmax of the program, and what became of its result.

    where: file:line. learned: a learned matrix makes its axis. of_product: its scores are queries · keys. reason: why
    it is no attention. ablations: what is done to it, looked up once for all products of its weights.
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
    """What is known of a tensor on the way. kind: of KINDS.

    known_axes: what each axis is, or the view that says so. softmax: of weights and what was made of them. learned,
    of_product: what made scores. log: weights of log_softmax. undropped: the weights without dropout. exponential: what
    an exp and its sums have in common. row_axis: that sums were taken over, from the right. factors: of terms.
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
        """Return the same with some changes."""
        track = object.__new__(Track)
        track.__dict__ = self.__dict__ | changes
        return track

    @property
    def axes(self) -> Axes:
        """What each axis is."""
        if isinstance(self.known_axes, View):
            self.known_axes = self.known_axes.axes()
        return self.known_axes


# Takes (softmax, weights, weights without dropout or None, values, layout) and returns the weights to multiply by.
Claim = Callable[[Softmax, Tensor, Tensor | None, Tensor, Layout], Tensor]
Prepared = tuple[Any, Any, Track | None]  # arguments, and what is then known of the result


class SoftmaxTracker:
    """Follows the tensors of one block. softmaxes: the last of each line and shape, so that long programs keep few."""

    def __init__(self, sites: CallSites, claim: Claim) -> None:
        self.softmaxes: dict[tuple[Site, tuple[int, ...]], Softmax] = {}
        self._sites, self._claim = sites, claim
        self._tracks: dict[int, tuple[weakref.ref[Tensor], Track]] = {}

    def prepare(self, name: str, args: Any, kwargs: Any) -> Prepared:
        """Look at a call of `PREPARED` before it runs."""
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
        """Note what is known of a result, from its arguments."""
        if name in SOFTMAXES:
            scores = args[0] if args else kwargs["input"]
            dim = kwargs.get("dim", args[1] if len(args) > 1 and name != "gumbel_softmax" else None)
            if dim is None:  # the default of gumbel_softmax, and that of F.softmax's early days
                dim = -1 if name == "gumbel_softmax" else 0 if scores.ndim in (0, 1, 3) else 1
            self._begin(self.track_of(scores), is_learned(scores), dim, result, log=name == "log_softmax")
        elif name in LEARNED_AXIS:
            before, axis = self.track_of(args[0]) if args else None, result.ndim + LEARNED_AXIS[name]
            mixes = before is not None and before.kind == "weights" and all(size == 1 for size in args[1].shape[2:])
            if before is not None and mixes and before.axes[axis] != "key":  # heads are mixed
                axes = tuple(None if n == axis else what for n, what in enumerate(before.axes))
                self.note(result, before.but(known_axes=axes, undropped=None))
            else:
                axes = tuple("learned" if n == axis else None for n in range(result.ndim))
                self.note(result, Track("scores", axes, learned=True))
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
            learned, of_product = learned or scores.axes[dim] == "learned", scores.of_product
            kernel = "softmax(q·k)" if of_product else "softmax(learned)" if scores.learned else kernel
        softmax = Softmax(*site, tuple(result.shape), kernel, learned, of_product)
        self.softmaxes[site, softmax.shape] = softmax
        axes = tuple("key" if n == dim % result.ndim else None for n in range(result.ndim))
        self.note(result, Track("weights", axes, softmax=softmax, log=log))

    def _before_dropout(self, name: str, args: Any, kwargs: Any) -> Track | None:
        """Keep weights without dropout."""
        track = self.track_of(args[0]) if args else None
        if track is None or track.kind != "weights" or track.undropped is not None:
            return track
        if not kwargs.get("training", args[2] if len(args) > 2 else True):
            return track
        in_place = name == "dropout_" or kwargs.get("inplace", len(args) > 3 and args[3])
        return track.but(undropped=args[0].detach().clone() if in_place else args[0].detach())

    def _before_sum(self, args: Any, kwargs: Any) -> Prepared:
        """Look at a sum: of weights · values, or of weights, which are then divided by it."""
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
        """Look at a product of weights, factor n, with something else: claim it if it is attention."""
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

    def _follow(self, function: Callable[..., Any], name: str, args: Any, kwargs: Any, result: Tensor) -> None:
        tracks = self._tracks  # looked up here, as `track_of` does: this runs for every function that is followed
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
                self._begin(track, False, sums.row_axis, result)
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
    """Whether a tensor is a parameter or a view of one."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def _shared(track: Track) -> object:
    """What weights or an exp have in common with their sums."""
    return track.exponential or track.softmax


def _replaced(arguments: Any, old: Tensor, new: Tensor) -> Any:
    """Put a tensor in the place of another in arguments, also in a list of them."""
    if isinstance(arguments, list | tuple):
        return type(arguments)(_replaced(argument, old, new) for argument in arguments)
    return new if arguments is old else arguments
