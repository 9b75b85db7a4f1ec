"""What watching needs of PyTorch's private names: no public ones say the same."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.nn import functional

functorch = torch._C._functorch


def in_backward_pass() -> bool:
    """Whether this runs inside a backward pass, where checkpointing computes calls a second time."""
    return torch._C._current_graph_task_id() != -1


def in_transform() -> bool:
    """Whether this runs inside vmap, grad or another transform of torch.func."""
    return functorch.peek_interpreter_stack() is not None


@contextmanager
def outside_transforms() -> Iterator[None]:
    """Suspend the transforms of torch.func, so that what is computed outlives them."""
    if in_transform():
        with temporarily_clear_interpreter_stack():
            yield
    else:
        yield


def without_transforms(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors as they are outside the transforms of torch.func. Axes that vmap maps over come first."""
    plain: list[tuple[Tensor, dict[int, int]]] = []
    levels: set[int] = set()
    for tensor in tensors:
        mapped = {}  # the axis that each level of vmap maps over
        while functorch.is_functorch_wrapped_tensor(tensor):
            if functorch.is_batchedtensor(tensor):
                mapped[functorch.maybe_get_level(tensor)] = functorch.maybe_get_bdim(tensor)
            tensor = functorch.get_unwrapped(tensor)
        plain.append((tensor, mapped))
        levels |= mapped.keys()
    result = []
    for tensor, mapped in plain:
        for n, level in enumerate(sorted(levels)):
            tensor = tensor.movedim(n + mapped[level], n) if level in mapped else tensor.unsqueeze(n)
        result.append(tensor)
    return result


def multi_head_attention_in_steps(attention: Callable[..., Any]) -> Callable[..., Any]:
    """Copy `F.multi_head_attention_forward` so that a function mode sees what it calls.

    attention: called as `scaled_dot_product_attention`, so that seeing it alone needs no mode. A mode is off while it
    answers, so nothing inside that function would be seen. The copy runs PyTorch's own code with a `has_torch_function`
    that finds no mode to ask. PyTorch itself is left as it is.
    """
    original: Any = functional.multi_head_attention_forward
    names = {**vars(functional), "has_torch_function": lambda _: False, "scaled_dot_product_attention": attention}
    copy = FunctionType(original.__code__, names, original.__name__, original.__defaults__)
    copy.__kwdefaults__ = original.__kwdefaults__
    return copy
