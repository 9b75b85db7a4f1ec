"""Keep a weight in half precision or quantised, as its file stores it, but compute with it in float32.

A `StoredWeight` looks like a float32 tensor, but takes only the memory of its bfloat16, float16 or quantised numbers.
The conversion to float32 is exact. Quantised numbers are a `regard.gguf.quantised_rows.QuantisedRows`: the type here is
Any, since this package works without that one. The operation determines how much is converted at a time:

    operation                                result
    ---------------------------------------  --------------------------------------------------------------------------
    a product with float32 numbers           the product, with the weight converted a block of rows at a time
    an embedding look-up                     the rows of these ids, converted
    a view, a slice, a concatenation         another `StoredWeight`
    anything else                            the result with the whole weight, converted temporarily
    a write into it                          RegardError
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.kernels import cpu
from regard.attention.kernels.threads import run_on_ranges
from regard.errors import RegardError

HALVES = (torch.bfloat16, torch.float16)
BLOCK, BLOCK_ON_GPU = 1 << 20, 1 << 26  # numbers converted at once; on a CPU, they fit into its cache
NEAR_BLOCK = 1 << 18  # quantised numbers converted at once for a product with fewer than MANY_ROWS rows:
MANY_ROWS = 64  # they fit into a nearer cache
VIEWS = frozenset((
    "T", "__getitem__", "cat", "chunk", "clone", "concat", "data", "detach", "expand", "flatten",
    "index_select", "mT", "movedim", "narrow", "permute", "reshape", "select", "split", "squeeze", "stack", "swapaxes",
    "t", "transpose", "unbind", "unflatten", "unsqueeze", "view",
))  # fmt: skip
MOVES = frozenset(("to", "cpu", "cuda", "float"))
PLACES = frozenset(("device", "is_cpu", "is_cuda", "is_meta", "data_ptr", "untyped_storage", "get_device"))
SHAPES = frozenset((
    "__len__", "_has_compatible_shallow_copy_type", "dim", "element_size", "is_complex",
    "is_floating_point", "is_inference", "ndimension", "numel", "register_hook", "requires_grad_", "size",
    "storage_offset", "stride",
))  # fmt: skip
# Products with a weight, with the names of their arguments in torch: x, the weight, and the bias.
PRODUCTS = {
    "linear": ("input", "weight", "bias"), "matmul": ("input", "other"), "__matmul__": ("input", "other"),
    "mm": ("input", "mat2"), "addmm": ("mat1", "mat2", "input"),
}  # fmt: skip
MIN_NUMBA = 1 << 18  # numbers; smaller bfloat16 matrices are left to torch, since loading Numba takes half a second


class StoredWeight(Tensor):
    """A float32 weight that is stored in half precision or quantised. stored: its numbers as stored."""

    stored: Any  # a tensor in half precision, or quantised rows

    @staticmethod
    def of(values: Float[Tensor, "..."] | Any) -> "StoredWeight":
        """Wrap half-precision or quantised numbers as a weight without copying them."""
        # a tensor on "meta" has a shape and a dtype, but no memory
        shell = torch.empty_strided(values.shape, values.stride(), dtype=torch.float32, device="meta")
        weight = shell.as_subclass(StoredWeight)
        weight.stored = values
        return weight

    def blocks(self) -> Iterator[Float[Tensor, "..."]]:
        """Yield the whole weight in float32, in blocks along its first axis."""
        yield from _upcast_blocks(self.stored)

    def values_to_check(self) -> Iterator[Float[Tensor, "..."]]:
        """Yield tensors that are finite if and only if all numbers of the weight are."""
        scales = self.stored.scales() if _is_quantised(self.stored) else None
        yield from self.blocks() if scales is None else (scales,)

    def __deepcopy__(self, copied: dict[int, Any]) -> Tensor:
        """Copy the weight with its numbers as stored."""
        copy: Tensor = StoredWeight.of(self.stored.clone())
        copied[id(self)] = copy = nn.Parameter(copy, requires_grad=False) if isinstance(self, nn.Parameter) else copy
        return copy

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            name = getattr(func, "__name__", "")
            if _reads_or_sets_attribute(func):  # then `name` is the attribute's name, with "=" before it if it is set
                name = "=" * (name == "__set__") + func.__self__.__name__
            return _run_operation(func, name, args, kwargs or {})


class _Product(torch.autograd.Function):
    """x @ weightᵀ for a stored weight. The gradient converts the weight again, to save memory."""

    @staticmethod
    def forward(x: Float[Tensor, "*B C"], weight: Any) -> Float[Tensor, "*B M"]:
        rows = x.reshape(-1, x.shape[-1]).contiguous()
        multiply = getattr(weight, "multiply_row", None) or partial(multiply_bfloat16_row, weight)
        product = multiply(rows[0]) if len(rows) == 1 else None
        if product is not None:
            return product.view(*x.shape[:-1], len(weight))
        start, columns = 0, _is_quantised(weight) and weight.flipped
        result = (x.new_zeros if columns else x.new_empty)(len(rows), len(weight))
        for block in _upcast_blocks(weight, small=len(rows) < MANY_ROWS):
            part = slice(start, start + len(block))
            if columns:
                result.addmm_(rows[:, part], block)
            else:
                result[:, part] = rows @ block.t()
            start += len(block)
        return result.view(*x.shape[:-1], len(weight))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.weight = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Float[Tensor, "*B M"]) -> tuple[Float[Tensor, "*B C"], None]:
        return _Product.apply(gradient, ctx.weight.t()), None

    @staticmethod
    def vmap(info: Any, axes: Any, x: Tensor, weight: Any) -> tuple[Tensor, int]:
        return _Product.apply(x.movedim(axes[0], 0), weight), 0


def _upcast_blocks(values: Any, small: bool = False) -> Iterator[Float[Tensor, "_ ..."]]:
    """Yield a stored weight in float32, in blocks along its first axis that overwrite each other.

    For flipped rows, blocks are along the second axis. small: use smaller blocks of quantised numbers, for a nearer
    cache.
    """
    if _is_quantised(values):
        yield from values.blocks(min(BLOCK, NEAR_BLOCK) if small else BLOCK)
        return
    limit = BLOCK if values.device.type == "cpu" else BLOCK_ON_GPU
    rows = max(1, min(len(values), limit // max(1, values[:1].numel())))
    buffer = values.new_empty((rows, *values.shape[1:]), dtype=torch.float32)
    for block in values.split(rows):
        yield buffer[: len(block)].copy_(block)


def _run_operation(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run a torch operation on a `StoredWeight`. name: of the operation or attribute; "=name" sets an attribute."""
    first = next(iter((*args, *kwargs.values())), None)
    weight = first if isinstance(first, StoredWeight) else None
    if weight is not None and name == "=data" and isinstance(args[1], StoredWeight):
        weight.stored = args[1].stored
        return None
    if name in PLACES:
        return func(*_change_within(args, _unwrap), **kwargs)
    if name == "is_contiguous":  # otherwise saving a model would allocate all numbers in float32
        return False
    if name in SHAPES or (_reads_or_sets_attribute(func) and name not in ("=data", *VIEWS)):
        return func(*args, **kwargs)
    if "out" in kwargs or (weight is not None and _writes(name)):
        raise RegardError(f"a weight that is kept as its file has it cannot be written into ({name.lstrip('=')})")
    result: Any = None
    if name in VIEWS and not any(isinstance(argument, torch.dtype) for argument in (*args, *kwargs.values())):
        if weight is not None and _is_quantised(weight.stored):
            result = _change_within(weight.stored.apply_view(func, name, args[1:], kwargs), _wrap)
        elif not _any_quantised((args, kwargs)):
            result = func(*_change_within(args, _unwrap), **_change_within(kwargs, _unwrap))
            return _change_within(result, _wrap)
    elif weight is not None and name in MOVES:
        moved = func(torch.empty(0, device=weight.stored.device), *args[1:], **kwargs)
        result = StoredWeight.of(weight.stored.to(moved.device)) if moved.dtype == torch.float32 else None
    elif name in PRODUCTS:
        result = _product(name, args, kwargs)
    elif name == "embedding":
        result = _look_up_rows(func, *args, **kwargs)
    return func(*_change_within(args, _upcast), **_change_within(kwargs, _upcast)) if result is None else result


def _product(name: str, args: Any, kwargs: dict[str, Any]) -> Tensor | None:
    """Multiply a float32 tensor by a 2-D weight, converted block by block. Return None for any other product."""
    names = ("input", "mat1", "mat2") if name == "addmm" else PRODUCTS[name]
    arguments = dict(zip(names, args, strict=False)) | kwargs
    x, weight, *rest = (arguments.pop(operand, None) for operand in PRODUCTS[name])
    if arguments or not isinstance(weight, StoredWeight) or isinstance(x, StoredWeight) or weight.ndim != 2:
        return None
    if not x.ndim or x.dtype != torch.float32 or x.device != weight.stored.device:
        return None
    forwards = torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0
    differentiated = forwards or torch.is_grad_enabled()
    multiply = _Product.apply if differentiated else _Product.forward  # `apply` adds 60 µs
    product = multiply(x, weight.stored if name == "linear" else weight.stored.t())
    added = rest[0] if rest else None
    return product if added is None else product + _upcast(added)


def _look_up_rows(
    func: Any, ids: Any, weight: Any, padding: int | None = None, max_norm: float | None = None, *_: Any, **__: Any
) -> Tensor | None:
    """Look up rows of an embedding table in float32. Return None if the look-up also writes into the table."""
    if max_norm is not None or not isinstance(weight, StoredWeight):
        return None
    if _is_quantised(weight.stored):
        return None if weight.stored.flipped else weight.stored.rows(ids)
    return func(ids, weight.stored).float()  # the padding index only affects gradients


def _reads_or_sets_attribute(func: Any) -> bool:
    """Return whether a torch operation reads or sets an attribute of a tensor."""
    return getattr(func, "__name__", "") in ("__get__", "__set__")


def _writes(name: str) -> bool:
    """Return whether a torch operation of this name writes into its first argument."""
    if name in ("=data", "__setitem__"):
        return True
    return name.startswith("__i") if name.startswith("__") else name.endswith("_")


def _change_within(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to each value in the nested arguments or results of a torch operation."""
    if isinstance(value, (list, tuple)):
        return type(value)(_change_within(item, change) for item in value) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {name: _change_within(item, change) for name, item in value.items()}
    return change(value)


def _unwrap(value: Any) -> Any:
    """Return a `StoredWeight`'s numbers as stored, or its bytes if it is quantised. Return anything else unchanged."""
    if not isinstance(value, StoredWeight):
        return value
    return value.stored.bytes if _is_quantised(value.stored) else value.stored


def _any_quantised(value: Any) -> bool:
    """Return whether the arguments of a torch operation contain a quantised `StoredWeight`."""
    quantised: list[bool] = []
    _change_within(value, lambda tensor: quantised.append(_is_quantised(getattr(tensor, "stored", None))))
    return any(quantised)


def _upcast(value: Any) -> Any:
    """Convert a `StoredWeight` to float32. Return anything else unchanged."""
    return value.stored.float() if isinstance(value, StoredWeight) else value


def _wrap(value: Any) -> Any:
    """Wrap half-precision or quantised numbers as a `StoredWeight`. Return anything else unchanged."""
    if _is_quantised(value) or (isinstance(value, Tensor) and value.dtype in HALVES):
        return StoredWeight.of(value)
    return value


def _is_quantised(values: Any) -> bool:
    """Return whether the numbers of a `StoredWeight` are quantised: `QuantisedRows` have this method, tensors don't."""
    return hasattr(values, "apply_view")


def multiply_bfloat16_row(weight: Float[Tensor, "M C"], x: Float[Tensor, " C"]) -> Float[Tensor, " M"] | None:
    """Return weight @ x in float32. Return None unless weight is large, in bfloat16, contiguous and on a CPU."""
    if x.device.type != "cpu" or x.shape != weight.shape[1:] or weight.dtype != torch.bfloat16:
        return None
    if weight.device.type != "cpu" or weight.numel() < MIN_NUMBA or not weight.is_contiguous():
        return None
    products = torch.empty(len(weight))
    rows, vector, target = weight.detach().view(torch.uint16).numpy(), x.detach().numpy(), products.numpy()

    def multiply_range(first: int, end: int) -> None:
        cpu.vector.multiply_bfloat16(rows[first:end], vector, target[first:end])

    run_on_ranges(len(rows), weight.numel(), multiply_range)
    return products
