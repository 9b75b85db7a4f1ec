"""The matrix product that the kernels spend most of their time in: oneDNN's or MKL's, whichever is faster here."""

import functools
import os
import time
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import threads
from regard.errors import RegardError

Product = Callable[[Tensor, Tensor], Tensor]

# Rounds of one measurement, and how much faster the other one has to be before the usual choice (oneDNN for attention's
# tiles, torch's own for a model's linear maps) is given up: a choice that noise can turn would not repeat bitwise.
ROUNDS, MARGIN = 12, 1.2
VARIABLE = "REGARD_PRODUCT"  # names the product in place of a measurement


def onednn(x: Float[Tensor, "R K"], y: Float[Tensor, "C K"]) -> Float[Tensor, "R C"]:
    """Compute x @ yᵀ by oneDNN. Copy a y whose rows are not adjacent in memory, in either order: it is very slow."""
    return torch.ops.mkldnn._linear_pointwise.default(x, y, None, "none", [], "")


def packed(y: Float[Tensor, "C K"], rows: int) -> Tensor:
    """Return y as oneDNN orders it for products with so many rows, to be given in its place; it cannot be sliced."""
    return torch.ops.mkldnn._reorder_linear_weight(y, rows)


def blas(x: Float[Tensor, "R K"], y: Float[Tensor, "C K"]) -> Float[Tensor, "R C"]:
    """Compute x @ yᵀ by the BLAS that torch was built with."""
    return torch.mm(x, y.t())


def product() -> Product:
    """Return the product for attention's tiles: the pinned one, or what was measured, once, to be the faster.

    Called from a task it measures on that thread.
    """
    asked = _pinned_tiles[-1] if _pinned_tiles else named()
    if asked is not None:
        return asked
    return blas if speed() * MARGIN < 1 else onednn


def linear() -> Product:
    """Return the product for a model's linear maps: the pinned one, or oneDNN's where it is clearly faster here."""
    asked = _pinned[-1] if _pinned else named()
    return asked if asked is not None else onednn if speed() > MARGIN else blas


def named() -> Product | None:
    """Return the product that the environment names, for runs that have to repeat bitwise; None where it names none.

    Raises:
        RegardError: there is no product of this name, or this build of torch lacks it.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return None
    found = {each.__name__: each for each in (onednn, blas)}.get(name)
    if found is None or (found is onednn and not onednn_works()):
        raise RegardError(f"{VARIABLE}: given {name!r}, needs blas or, where this build of torch has it, onednn")
    return found


def linear_is_torch_s() -> bool:
    """Return whether it is known, without measuring anything now, that linear maps are left to torch."""
    return bool(_pinned or os.environ.get(VARIABLE) or speed.cache_info().currsize) and linear() is blas


def pin(name: str, *, tiles: str | None = None) -> bool:
    """Use the product of this name ("onednn" or "blas") for linear maps from now on, so that results repeat bitwise.

    tiles: the one for attention's tiles, None to leave it to what is measured. False where this build lacks one: then
    neither is pinned.
    """
    known = {each.__name__: each for each in (onednn, blas)}
    chosen = [known.get(each) for each in (name, tiles or name)]
    if None in chosen or (onednn in chosen and not onednn_works()):
        return False
    _pinned[:] = [known[name]]
    if tiles is not None:
        _pinned_tiles[:] = [known[tiles]]
    return True


def pinned() -> tuple[list[Product], list[Product]]:
    """Return what is pinned, to be given to `restore` later."""
    return [*_pinned], [*_pinned_tiles]


def restore(before: tuple[list[Product], list[Product]]) -> None:
    """Pin what `pinned` returned, or nothing, as it was then."""
    _pinned[:], _pinned_tiles[:] = before


_pinned: list[Product] = []
_pinned_tiles: list[Product] = []


@functools.cache
def speed() -> float:
    """Measure, once, how many times as fast as the BLAS of torch oneDNN is here; 0 where it does not work."""
    return threads.run([_measure])[0]


def onednn_works() -> bool:
    """Return whether this build of torch has oneDNN's product and it gives the right answer."""
    x, y = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3)
    try:
        given, right = (y, packed(y, 2)), blas(x, y)
        return torch.backends.mkldnn.is_available() and all(torch.equal(onednn(x, each), right) for each in given)
    except (AttributeError, RuntimeError, NotImplementedError):
        return False


def _measure() -> float:
    if not onednn_works():
        return 0.0
    x, y = torch.ones(512, 64), torch.ones(1024, 64)
    times: dict[Product, list[float]] = {onednn: [], blas: []}
    for _ in range(ROUNDS):  # interleaved, so that a busy moment meets both
        for candidate, taken in times.items():
            start = time.perf_counter()
            candidate(x, y)
            taken.append(time.perf_counter() - start)
    # the best of each: the first rounds build oneDNN's code and fault in memory, whatever else runs here only adds
    return min(times[blas]) / min(times[onednn])
