"""Tensors of a mapped file that are held against their digests before anybody reads a number of them."""

import copy
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.tensor_files.header import CODES

PENDING = "0" * 64  # stands for a digest until it is known


def hasher(dtype: torch.dtype, shape: tuple[int, ...]) -> Any:
    """SHA-256, begun with what a tensor is; its bytes follow."""
    return hashlib.sha256(f"{CODES[dtype]} {list(shape)}\n".encode())


def bytes_of(tensor: Tensor) -> Tensor:
    """The bytes of a contiguous tensor, in its memory."""
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)  # one number may have any stride


def digest_of(tensor: Tensor) -> str:
    """The digest of a contiguous tensor on the CPU."""
    found = hasher(tensor.dtype, tuple(tensor.shape))
    found.update(bytes_of(tensor).numpy().data)
    return str(found.hexdigest())


def unsound(tensor: Tensor, below: bool) -> str | None:
    """Why a tensor cannot be one of a model's: it holds what is no number. below: whether -inf is one, as in a bias."""
    if not tensor.numel():
        return None
    if not tensor.is_floating_point():
        return "values that are neither true nor false" if int(bytes_of(tensor).max()) > 1 else None
    low, high = (float(end) for end in tensor.aminmax())  # both NaN where there is any
    sound = high < torch.inf and (low > -torch.inf or (below and low == -torch.inf))
    return None if sound else "numbers that are not finite"


class Seal:
    """What is known of a stored tensor: its digest, and whether it was held against it already."""

    def __init__(self, file: str, name: str, stored: Tensor, digest: str, below: bool) -> None:
        self._file, self._name, self._stored, self._digest, self._below = file, name, stored, digest, below
        self._sound = False

    def check(self) -> None:
        """Read the tensor once, and never again.

        Raises:
            RegardError: it is not what was saved, or holds what is no number.
        """
        if self._sound:
            return
        if digest_of(self._stored) != self._digest:
            raise RegardError(f"{self._file!r} is damaged: tensor {self._name!r} is not what was saved")
        why = unsound(self._stored, self._below)
        if why is not None:
            raise RegardError(f"{self._file!r}: tensor {self._name!r} holds {why}")
        self._sound = True


class Mapped(Tensor):
    """A tensor that lies in a mapped file, checked before a number of it is first read; what is made of it is plain."""

    _seal: Seal

    @staticmethod
    def of(tensor: Tensor, seal: Seal) -> "Mapped":
        """The tensor, which shares its memory with the one that is returned, under its seal."""
        mapped = tensor.as_subclass(Mapped)
        mapped._seal = seal
        return mapped

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Check the tensors that a function is given, unless it asks for no number of them."""
        if func not in UNREAD:
            for each in _mapped((args, kwargs)):
                each._seal.check()
        with torch._C.DisableTorchFunctionSubclass():
            found = func(*args, **(kwargs or {}))
            return Mapped.of(found, args[0]._seal) if func in SHARING else found

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.clone().__reduce_ex__(protocol)

    def __deepcopy__(self, memo: Any) -> Tensor:
        return memo.setdefault(id(self), copy.deepcopy(self.clone(), memo))


SHARING = {Tensor.detach}  # what gives the same tensor once more, still unread
PROPERTIES = ("shape", "dtype", "device", "ndim", "layout", "requires_grad", "is_leaf", "grad", "grad_fn", "is_cuda",
              "is_meta", "is_sparse", "is_quantized", "itemsize", "nbytes")  # fmt: skip
UNREAD = SHARING | {getattr(Tensor, name).__get__ for name in PROPERTIES} | {
    Tensor.__len__, Tensor.size, Tensor.dim, Tensor.ndimension, Tensor.numel, Tensor.nelement, Tensor.element_size,
    Tensor.stride, Tensor.storage_offset, Tensor.is_contiguous, Tensor.is_floating_point, Tensor.is_complex,
    torch.is_floating_point, torch.is_complex, torch.numel,
}  # fmt: skip


def _mapped(given: Any) -> Iterator[Mapped]:
    """The tensors of files among a function's arguments."""
    if isinstance(given, Mapped):
        yield given
    elif isinstance(given, (tuple, list)):
        for each in given:
            yield from _mapped(each)
    elif isinstance(given, dict):
        for each in given.values():
            yield from _mapped(each)
