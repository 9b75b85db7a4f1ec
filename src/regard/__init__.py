"""regard: see what every token of a text pays attention to, exactly and at any length.

Names are loaded when they are first used, so that `import regard` and `regard --help` do not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.attention import masks as masks
    from regard.attention.cache import KeyValueCache as KeyValueCache
    from regard.attention.door import Attention as Attention
    from regard.attention.door import attend as attend
    from regard.attention.kernels import kernels as kernels
    from regard.attention.map import AttentionMap as AttentionMap
    from regard.attention.modules import CrossAttention as CrossAttention
    from regard.attention.modules import SelfAttention as SelfAttention
    from regard.attention.multihead import MultiHeadAttention as MultiHeadAttention
    from regard.attention.multihead import masks_from_torch as masks_from_torch
    from regard.attention.record import record as record
    from regard.attention.record import scope as scope
    from regard.captures import open as open  # noqa: A004 (regard.open is its name)
    from regard.captures import save as save
    from regard.errors import RegardError as RegardError
    from regard.models.config import TransformerConfig as TransformerConfig
    from regard.models.load import load as load
    from regard.models.transformer import Transformer as Transformer
    from regard.models.without import edge as edge
    from regard.models.without import head as head
    from regard.trace import Trace as Trace

__version__ = "0.1.0"

_WHERE = {
    "Attention": "regard.attention.door",
    "AttentionMap": "regard.attention.map",
    "CrossAttention": "regard.attention.modules",
    "KeyValueCache": "regard.attention.cache",
    "MultiHeadAttention": "regard.attention.multihead",
    "RegardError": "regard.errors",
    "SelfAttention": "regard.attention.modules",
    "Trace": "regard.trace",
    "Transformer": "regard.models.transformer",
    "TransformerConfig": "regard.models.config",
    "attend": "regard.attention.door",
    "edge": "regard.models.without",
    "head": "regard.models.without",
    "kernels": "regard.attention.kernels",
    "load": "regard.models.load",
    "masks": "regard.attention",
    "masks_from_torch": "regard.attention.multihead",
    "open": "regard.captures",
    "positions": "regard",
    "record": "regard.attention.record",
    "save": "regard.captures",
    "scope": "regard.attention.record",
}

_MODULES = ("masks", "positions")

__all__ = [*sorted(_WHERE), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    if name in _MODULES:
        value: Any = importlib.import_module(f"{_WHERE[name]}.{name}")
    else:
        value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
