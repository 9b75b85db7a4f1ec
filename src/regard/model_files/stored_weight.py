"""Keep a weight's numbers as its file has them, in half precision or quantised, and compute with them in float32.

A `StoredWeight` is a float32 tensor to whoever asks for its dtype, shape or device, and has the memory of its bfloat16,
float16 or quantised numbers. What a model does with it decides how they are converted to float32, which is exact:

    operation                                gives
    ---------------------------------------  --------------------------------------------------------------------------
    a linear map of float32 numbers          their product, the weight converted a block of rows at a time
    a look-up in a table                     the rows that were looked up, converted
    a view, a part, several joined           a `StoredWeight` again
    anything else                            what it gives on the whole weight, converted for the moment
    a write into it                          RegardError
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import RegardError
from regard.model_files.quantised_rows import QuantisedRows, passes, share_out

HALVES = (torch.bfloat16, torch.float16)
BLOCK, BLOCK_ON_GPU = 1 << 20, 1 << 26  # numbers converted at once: on a CPU so many that they stay in its cache,
NEAR = 1 << 18  # of quantised ones in the nearer one, which is what counts where they are converted for
MANY = 64  # fewer rows than that
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
# Products by a weight: the names of their arguments, x, the weight, what is added, as torch calls them in this place.
PRODUCTS = {
    "linear": ("input", "weight", "bias"), "matmul": ("input", "other"), "__matmul__": ("input", "other"),
    "mm": ("input", "mat2"), "addmm": ("mat1", "mat2", "input"),
}  # fmt: skip
MIN_NUMBA = 1 << 18  # numbers of a bfloat16 matrix below which torch converts it: Numba takes half a second to load


class StoredWeight(Tensor):
    """A float32 weight that has the memory of its numbers in half precision, or quantised. stored: those numbers."""

    stored: Tensor | QuantisedRows

    @staticmethod
    def of(values: Float[Tensor, "..."] | QuantisedRows) -> "StoredWeight":
        """Make the weight of such numbers, which aren't copied."""
        # a tensor on "meta" has a shape and a dtype, and no memory
        shell = torch.empty_strided(values.shape, values.stride(), dtype=torch.float32, device="meta")
        weight = shell.as_subclass(StoredWeight)
        weight.stored = values
        return weight

    def blocks(self) -> Iterator[Float[Tensor, "..."]]:
        """Yield the whole weight in float32, a block of its first axis at a time."""
        yield from _upcast_blocks(self.stored)

    def telling(self) -> Iterator[Float[Tensor, "..."]]:
        """Yield tensors that are finite if and only if all numbers of the weight are."""
        scales = self.stored.scales() if isinstance(self.stored, QuantisedRows) else None
        yield from self.blocks() if scales is None else (scales,)

    def __deepcopy__(self, copied: dict[int, Any]) -> Tensor:
        """Copy the numbers as they are stored."""
        copy: Tensor = StoredWeight.of(self.stored.clone())
        copied[id(self)] = copy = nn.Parameter(copy, requires_grad=False) if isinstance(self, nn.Parameter) else copy
        return copy

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            name = getattr(func, "__name__", "")
            if _reads_or_sets_attribute(func):  # the attribute's own name, and "=" before it if it is set
                name = "=" * (name == "__set__") + func.__self__.__name__
            return _computed(func, name, args, kwargs or {})


class _Product(torch.autograd.Function):
    """x @ weightᵀ of stored numbers, which are converted again for the gradient; nothing of them is kept."""

    @staticmethod
    def forward(x: Float[Tensor, "*B C"], weight: Float[Tensor, "M C"] | QuantisedRows) -> Float[Tensor, "*B M"]:
        rows = x.reshape(-1, x.shape[-1]).contiguous()
        product = multiply_one_row(rows[0], weight) if len(rows) == 1 else None
        if product is not None:
            return product.view(*x.shape[:-1], len(weight))
        done, columns = 0, isinstance(weight, QuantisedRows) and weight.flipped
        made = (x.new_zeros if columns else x.new_empty)(len(rows), len(weight))
        for block in _upcast_blocks(weight, near=len(rows) < MANY):
            part = slice(done, done + len(block))
            if columns:
                made.addmm_(rows[:, part], block)
            else:
                made[:, part] = rows @ block.t()
            done += len(block)
        return made.view(*x.shape[:-1], len(weight))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.weight = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Float[Tensor, "*B M"]) -> tuple[Float[Tensor, "*B C"], None]:
        return _Product.apply(gradient, ctx.weight.t()), None

    @staticmethod
    def vmap(info: Any, axes: Any, x: Tensor, weight: Tensor | QuantisedRows) -> tuple[Tensor, int]:
        return _Product.apply(x.movedim(axes[0], 0), weight), 0


def _upcast_blocks(
    values: Float[Tensor, "R *C"] | QuantisedRows, near: bool = False
) -> Iterator[Float[Tensor, "_ ..."]]:
    """Numbers in float32, a block of their first axis at a time, each in the place of the previous one.

    Of flipped rows it is the axis of the rows, the second. near: whether quantised ones are to stay in a nearer cache.
    """
    if isinstance(values, QuantisedRows):
        yield from values.blocks(min(BLOCK, NEAR) if near else BLOCK)
        return
    most = BLOCK if values.device.type == "cpu" else BLOCK_ON_GPU
    rows = max(1, min(len(values), most // max(1, values[:1].numel())))
    place = values.new_empty((rows, *values.shape[1:]), dtype=torch.float32)
    for block in values.split(rows):
        yield place[: len(block)].copy_(block)


def _computed(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """What an operation gives that reads a `StoredWeight`. name: the operation's, or an attribute's, "=" before it."""
    first = next(iter((*args, *kwargs.values())), None)
    weight = first if isinstance(first, StoredWeight) else None
    if weight is not None and name == "=data" and isinstance(args[1], StoredWeight):
        weight.stored = args[1].stored
        return None
    if name in PLACES:
        return func(*_change_within(args, _numbers), **kwargs)
    if name == "is_contiguous":  # or who saves a model would take its memory for that of float32
        return False
    if name in SHAPES or (_reads_or_sets_attribute(func) and name not in ("=data", *VIEWS)):
        return func(*args, **kwargs)
    if "out" in kwargs or (weight is not None and _writes(name)):
        raise RegardError(f"a weight that is kept as its file has it cannot be written into ({name.lstrip('=')})")
    made: Any = None
    if name in VIEWS and not any(isinstance(argument, torch.dtype) for argument in (*args, *kwargs.values())):
        if weight is not None and isinstance(weight.stored, QuantisedRows):
            made = _change_within(weight.stored.viewed(func, name, args[1:], kwargs), _wrapped)
        elif not _any_quantised((args, kwargs)):
            made = func(*_change_within(args, _numbers), **_change_within(kwargs, _numbers))
            return _change_within(made, _wrapped)
    elif weight is not None and name in MOVES:
        moved = func(torch.empty(0, device=weight.stored.device), *args[1:], **kwargs)
        made = StoredWeight.of(weight.stored.to(moved.device)) if moved.dtype == torch.float32 else None
    elif name in PRODUCTS:
        made = _product(name, args, kwargs)
    elif name == "embedding":
        made = _looked_up(func, *args, **kwargs)
    return func(*_change_within(args, _upcast), **_change_within(kwargs, _upcast)) if made is None else made


def _product(name: str, args: Any, kwargs: dict[str, Any]) -> Tensor | None:
    """A product of float32 numbers by a weight of two axes, converted by blocks; None for any other product."""
    names = ("input", "mat1", "mat2") if name == "addmm" else PRODUCTS[name]
    arguments = dict(zip(names, args, strict=False)) | kwargs
    x, weight, *rest = (arguments.pop(operand, None) for operand in PRODUCTS[name])
    if arguments or not isinstance(weight, StoredWeight) or isinstance(x, StoredWeight) or weight.ndim != 2:
        return None
    if not x.ndim or x.dtype != torch.float32 or x.device != weight.stored.device:
        return None
    differentiated = torch.is_grad_enabled() or torch._C._are_functorch_transforms_active()
    multiply = _Product.apply if differentiated else _Product.forward  # apply alone takes 60 µs
    made = multiply(x, weight.stored if name == "linear" else weight.stored.t())
    added = rest[0] if rest else None
    return made if added is None else made + _upcast(added)


def _looked_up(
    func: Any, ids: Any, weight: Any, padding: int | None = None, max_norm: float | None = None, *_: Any, **__: Any
) -> Tensor | None:
    """The rows of a table, converted; None if the look-up also writes into the table."""
    if max_norm is not None or not isinstance(weight, StoredWeight):
        return None
    if isinstance(weight.stored, QuantisedRows):
        return None if weight.stored.flipped else weight.stored.rows(ids)
    return func(ids, weight.stored).float()  # which row is padding matters to training alone


def _reads_or_sets_attribute(func: Any) -> bool:
    """Whether an operation is the reading of an attribute, or its setting."""
    return getattr(func, "__name__", "") in ("__get__", "__set__")


def _writes(name: str) -> bool:
    """Whether an operation of this name writes into its first argument."""
    if name in ("=data", "__setitem__"):
        return True
    return name.startswith("__i") if name.startswith("__") else name.endswith("_")


def _change_within(value: Any, change: Callable[[Any], Any]) -> Any:
    """Arguments or results with each tensor among them changed."""
    if isinstance(value, (list, tuple)):
        return type(value)(_change_within(item, change) for item in value) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {name: _change_within(item, change) for name, item in value.items()}
    return change(value)


def _numbers(value: Any) -> Any:
    """The numbers of a `StoredWeight` as they are stored, of a quantised one its bytes; anything else as it is."""
    if not isinstance(value, StoredWeight):
        return value
    return value.stored.bytes if isinstance(value.stored, QuantisedRows) else value.stored


def _any_quantised(value: Any) -> bool:
    """Whether a `StoredWeight` of quantised numbers is among arguments."""
    quantised: list[bool] = []
    _change_within(value, lambda tensor: quantised.append(isinstance(getattr(tensor, "stored", None), QuantisedRows)))
    return any(quantised)


def _upcast(value: Any) -> Any:
    """The numbers of a `StoredWeight` in float32; anything else as it is."""
    return value.stored.float() if isinstance(value, StoredWeight) else value


def _wrapped(value: Any) -> Any:
    """A `StoredWeight` of numbers in half precision or quantised; anything else as it is."""
    if isinstance(value, QuantisedRows) or (isinstance(value, Tensor) and value.dtype in HALVES):
        return StoredWeight.of(value)
    return value


def multiply_one_row(
    x: Float[Tensor, " C"], weight: Float[Tensor, "M C"] | QuantisedRows
) -> Float[Tensor, " M"] | None:
    """Return weight @ x, (M,) in float32; None if there is no pass for such a weight: blocks are converted then.

    weight: in bfloat16, or quantised in one of the kinds of `quantised_blocks.PASSES`, on a CPU, its rows one after
    another.
    """
    if x.device.type != "cpu" or x.shape != weight.shape[1:]:
        return None
    if isinstance(weight, Tensor):
        if weight.dtype != torch.bfloat16 or weight.device.type != "cpu" or weight.numel() < MIN_NUMBA:
            return None
    elif weight.ndim != 2 or weight.flipped:
        return None
    blocks, packed = passes(), weight.view(torch.uint16) if isinstance(weight, Tensor) else weight.bytes
    kind = blocks.BFLOAT16 if isinstance(weight, Tensor) else weight.kind
    if kind not in (blocks.BFLOAT16, *blocks.PASSES) or not packed.is_contiguous():
        return None
    made = torch.empty(len(weight))
    rows, vector, into = packed.detach().numpy(), x.detach().contiguous().numpy(), made.numpy()

    def part(first: int, end: int) -> None:
        blocks.multiply_row(kind, rows[first:end], vector, into[first:end])

    share_out(len(rows), made.numel() * len(vector), part)
    return made
