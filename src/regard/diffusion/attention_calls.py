"""Answer torch's attention inside a module with ours, and say of which attention module each call is.

Every attention module of diffusers hands its query, key and value to torch's `scaled_dot_product_attention`, unless it
was given a processor of another kind. A function mode answers these calls by `attend`; hooks on the modules tell whose
they are. So the pictures stay what they are, and every record, ablation and statistic of `attend` works on them.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from regard.attention.attend import attend
from regard.attention.attention_map import AttentionMap
from regard.attention.recording import scope
from regard.errors import RegardError


@runtime_checkable
class CallSeen(Protocol):
    """What is told of every attention call: its module's path and named arguments, and its weights (B, H, L, S)."""

    def __call__(self, path: str, given: Mapping[str, object], weights: AttentionMap) -> None:
        """Take what is needed of the weights; they are computed when they are asked for."""


@dataclass
class _Inside:
    """An attention module that runs: its path, what it was given, and whether a call of it was seen."""

    path: str
    given: Mapping[str, object]
    seen: bool = field(default=False)


class _Answered(TorchFunctionMode):
    """Attention calls inside attention modules, computed by `attend`; those of other modules are left alone."""

    def __init__(self, see: CallSeen) -> None:
        super().__init__()
        self.see = see
        self.inside: list[_Inside] = []

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function is functional.scaled_dot_product_attention and self.inside:
            return self.attend(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))

    def attend(
        self,
        query: Float[Tensor, "B H L D"],
        key: Float[Tensor, "B G S D"],
        value: Float[Tensor, "B G S E"],
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Float[Tensor, "B H L E"]:
        """Compute what torch would; fewer key than query heads need no flag here."""
        module = self.inside[-1]
        module.seen = True
        of: dict[str, Any] = (
            {} if attn_mask is None else {"mask" if attn_mask.dtype == torch.bool else "bias": attn_mask}
        )
        causal: dict[str, Any] = {"causal": True, "offset": 0} if is_causal else {}
        with scope(module.path):
            found = attend(query, key, value, scale=scale, dropout=dropout_p, **of, **causal)
        self.see(module.path, module.given, found.weights)
        return found.output


@contextmanager
def answered_attention(model: nn.Module, see: CallSeen) -> Iterator[None]:
    """Answer the attention calls of a model's attention modules inside the block, and tell `see` of each."""
    modules = {path: each for path, each in model.named_modules() if hasattr(each, "processor")}
    if not modules:
        raise RegardError(f"a {type(model).__name__} has no attention modules of diffusers: nothing of it can be seen")
    mode = _Answered(see)
    with ExitStack() as stack:
        for path, module in modules.items():
            for hook in _hooks(module, path, mode.inside):
                stack.callback(hook.remove)
        stack.enter_context(mode)
        yield


def _hooks(module: nn.Module, path: str, inside: list[_Inside]) -> list[Any]:
    """Say on which path a module's calls are, from its beginning to its end, however it ends."""

    def begin(_: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        inside.append(_Inside(path, kwargs))

    def end(_: nn.Module, args: object, output: object) -> None:
        if inside and not inside.pop().seen and output is not None:  # None: it raised
            raise RegardError(
                f"{path}: its processor {type(module.processor).__name__} does not compute attention by torch's "
                "scaled_dot_product_attention: its weights cannot be seen; needs diffusers' own AttnProcessor2_0, as "
                "a pipeline has it where none is set"
            )

    return [
        module.register_forward_pre_hook(begin, with_kwargs=True),
        module.register_forward_hook(end, always_call=True),
    ]
