"""Let one observer stand around each attention call: it sees the live query and key, and may replace the output.

Records (`recording.py`) keep detached copies; a pass that is differentiated needs the tensors of its graph themselves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap


@runtime_checkable
class CallHook(Protocol):
    """What stands around a call."""

    def before(
        self, query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], value: Float[Tensor, "B G S E"]
    ) -> tuple[Float[Tensor, "B H L D"], Float[Tensor, "B G S D"], Float[Tensor, "B G S E"]]:
        """Give the tensors that the call is to compute with."""

    def after(
        self, weights: AttentionMap, value: Float[Tensor, "B G S E"], output: Float[Tensor, "B H L E"]
    ) -> Float[Tensor, "B H L E"]:
        """Give the output that the call is to return."""


_open: ContextVar[CallHook | None] = ContextVar("regard_call_hook", default=None)


@contextmanager
def hooked_calls(hook: CallHook) -> Iterator[None]:
    """Put a hook around every attention call made inside the block, in this thread or task; the innermost counts."""
    token = _open.set(hook)
    try:
        yield
    finally:
        _open.reset(token)


def current_hook() -> CallHook | None:
    """Return the innermost hook, None where there is none."""
    return _open.get()
