"""SHA-256 digests of tensors, and tensors of a mapped file that are checked against theirs when first read."""

import copy
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError

CODES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.bool: "BOOL",
}  # dtypes that are stored, as safetensors writes them


def hasher_of_tensor(dtype: torch.dtype, shape: tuple[int, ...]) -> Any:
    """Start a SHA-256 with a tensor's dtype and shape; add its bytes."""
    return hashlib.sha256(f"{CODES[dtype]} {list(shape)}\n".encode())


def bytes_of(tensor: Tensor) -> Tensor:
    """View a contiguous tensor as bytes."""
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)  # one number may have any stride


def digest_of(tensor: Tensor) -> str:
    """The SHA-256 of a contiguous tensor on the CPU: of its dtype and shape, as in "F32 [14, 384]", and its bytes."""
    digest = hasher_of_tensor(tensor.dtype, tuple(tensor.shape))
    digest.update(bytes_of(tensor).numpy().data)
    return str(digest.hexdigest())


def why_invalid(tensor: Tensor, minus_inf: bool) -> str | None:
    """Say which invalid values a tensor holds: NaN or infinity; None where it holds none.

    minus_inf: whether -inf is valid, as in a bias.
    """
    if not tensor.numel():
        return None
    if not tensor.is_floating_point():
        return "values that are neither true nor false" if int(bytes_of(tensor).max()) > 1 else None
    low, high = (float(end) for end in tensor.aminmax())  # both NaN where there is any
    valid = high < torch.inf and (low > -torch.inf or (minus_inf and low == -torch.inf))
    return None if valid else "numbers that are not finite"


class Check:
    """The check of one stored tensor against its digest, run at most once."""

    def __init__(self, file: str, name: str, stored: Tensor, digest: str, minus_inf: bool) -> None:
        self._file, self._name, self._stored, self._digest, self._minus_inf = file, name, stored, digest, minus_inf
        self._passed = False

    def run(self) -> None:
        """Read the tensor and compare its digest; do nothing where that was done before.

        Raises:
            RegardError: it is not what was saved, or holds NaN or infinity.
        """
        if self._passed:
            return
        if digest_of(self._stored) != self._digest:
            raise RegardError(f"{self._file!r} is damaged: tensor {self._name!r} is not what was saved")
        why = why_invalid(self._stored, self._minus_inf)
        if why is not None:
            raise RegardError(f"{self._file!r}: tensor {self._name!r} holds {why}")
        self._passed = True


class MappedTensor(Tensor):
    """A tensor that lies in a mapped file, checked before a number of it is first read; results of it are plain."""

    _check: Check

    @staticmethod
    def of(tensor: Tensor, check: Check) -> "MappedTensor":
        """Return the tensor, in the same memory, with its check."""
        mapped = tensor.as_subclass(MappedTensor)
        mapped._check = check
        return mapped

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Check the tensors among a function's arguments, unless it reads no number of them."""
        if func not in UNREAD:
            for each in _mapped((args, kwargs)):
                each._check.run()
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
            return MappedTensor.of(result, args[0]._check) if func in SHARING else result

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.clone().__reduce_ex__(protocol)

    def __deepcopy__(self, memo: Any) -> Tensor:
        return memo.setdefault(id(self), copy.deepcopy(self.clone(), memo))


SHARING = {Tensor.detach}  # functions that return the same tensor, still unread
PROPERTIES = ("shape", "dtype", "device", "ndim", "layout", "requires_grad", "is_leaf", "grad", "grad_fn", "is_cuda",
              "is_meta", "is_sparse", "is_quantized", "itemsize", "nbytes")  # fmt: skip
UNREAD = SHARING | {getattr(Tensor, name).__get__ for name in PROPERTIES} | {
    Tensor.__len__, Tensor.size, Tensor.dim, Tensor.ndimension, Tensor.numel, Tensor.nelement, Tensor.element_size,
    Tensor.stride, Tensor.storage_offset, Tensor.is_contiguous, Tensor.is_floating_point, Tensor.is_complex,
    torch.is_floating_point, torch.is_complex, torch.numel,
}  # fmt: skip


def _mapped(given: Any) -> Iterator[MappedTensor]:
    """The tensors of files among a function's arguments."""
    if isinstance(given, MappedTensor):
        yield given
    elif isinstance(given, (tuple, list)):
        for each in given:
            yield from _mapped(each)
    elif isinstance(given, dict):
        for each in given.values():
            yield from _mapped(each)
