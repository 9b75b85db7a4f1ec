"""Keep the keys and values of a text's plain pass, so that another pass of the text can begin within it.

If each token attends only to itself and earlier tokens, a change at token p doesn't affect the tokens before p. A pass
that begins at p then needs only their keys and values in each layer. The plain pass fills a key/value cache of
transformers. Later passes use a part of it, which they extend without changing it.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.attention.recording import Call
from regard.capture.interventions.names import CallIds

MAX_WRITTEN_TOKENS = 1024  # largest number of tokens for which the whole mask is computed if it isn't just a band


@dataclass(frozen=True)
class PassReuse:
    """The results that a pass reuses from an earlier pass to skip computations.

    call_ids: of its attention calls, None to find them. skipped: paths of layers that repeat their earlier outputs.
    context: context manager around the model's forward. inputs: changes the model's inputs. past: the number of tokens
    before the start of the pass.
    """

    call_ids: CallIds | None = None
    skipped: frozenset[str] = frozenset()
    context: Callable[[], AbstractContextManager[None]] = nullcontext
    inputs: Callable[[dict[str, Any]], dict[str, Any]] = dict
    past: int = 0


NO_REUSE = PassReuse()


class KeptKeys:
    """The keys and values of a text in each layer, in a cache that a plain pass fills.

    `filling` adds an empty cache to the inputs of the plain pass, `continued` its contents to those of a later pass.
    """

    def __init__(self) -> None:
        self._cache: Any = None

    def filling(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the inputs with an empty cache, which keeps all keys even in sliding-window layers."""
        from transformers import DynamicCache

        self._cache = DynamicCache()
        return inputs | {"past_key_values": self._cache, "use_cache": True}

    def complete(self, depth: int, length: int) -> bool:
        """Return whether the cache has keys and values of a text's tokens for each layer."""
        layers = [] if self._cache is None else self._cache.layers
        # other caches keep only a window, or quantized keys
        if len(layers) != depth or not all(type(x).__name__ == "DynamicLayer" and x.is_initialized for x in layers):
            return False
        tensors = [tensor for layer in layers for tensor in (layer.keys, layer.values)]
        return all(x is not None and x.ndim == 4 and x.shape[::2] == (1, length) for x in tensors)

    def continued(self, inputs: dict[str, Any], past: int) -> dict[str, Any]:
        """Return inputs for a pass from token `past` on, with the cached keys and values of the tokens before it."""
        from transformers import DynamicCache

        rows = inputs["input_ids"].shape[0]
        cache = DynamicCache()
        cache.layers = [_earlier_layer(x.keys[:, :, :past], x.values[:, :, :past], rows) for x in self._cache.layers]
        cut = {name: inputs[name][:, past:] for name in ("input_ids", "token_type_ids") if name in inputs}
        return inputs | cut | {"past_key_values": cache, "use_cache": True}


def attends_back(call: Call) -> bool:
    """Return whether no token of a recorded attention call attends to a later token."""
    length, size = call.weights.shape[-2:]
    mask = call.weights.rule.mask
    if length != size or mask is None:
        return length == size == 1
    if mask.high is not None and mask.high <= 0:
        return True
    if length > MAX_WRITTEN_TOKENS:
        return False
    tokens, everything = slice(0, length), slice(None)
    allowed = mask.tile(everything, everything, tokens, tokens, call.weights.query.device)
    return allowed is not None and not bool(allowed.expand(*allowed.shape[:2], length, size).triu(1).any())


def without_first(output: Any, past: int) -> Any:
    """Return a layer's output for one text without the states (1, L, M) of the first tokens."""
    if isinstance(output, Tensor):
        return output[:, past:] if past and output.ndim == 3 and len(output) == 1 else output
    if type(output) in (tuple, list):
        return type(output)(without_first(value, past) for value in output)
    return output


def _earlier_layer(key: Tensor, value: Tensor, rows: int) -> Any:
    """Return the cache of one layer. It appends new keys and values to the earlier ones without storing them."""
    from transformers.cache_utils import DynamicLayer

    layer: Any = DynamicLayer()
    layer.keys, layer.values = earlier = key.expand(rows, -1, -1, -1), value.expand(rows, -1, -1, -1)
    layer.dtype, layer.device, layer.is_initialized = key.dtype, key.device, True
    layer.update = lambda *new, **_: tuple(torch.cat(pair, -2) for pair in zip(earlier, new[:2], strict=True))
    return layer
