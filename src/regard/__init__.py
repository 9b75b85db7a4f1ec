"""regard: see what every token of a text pays attention to, exactly and at any length.

Names are loaded when they are first used, so that `import regard` and `regard --help` do not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.attention import masks
    from regard.attention.door import Attention, attend
    from regard.attention.map import AttentionMap
    from regard.attention.record import record, scope
    from regard.errors import RegardError

__version__ = "0.1.0"

_WHERE = {
    "Attention": "regard.attention.door",
    "AttentionMap": "regard.attention.map",
    "RegardError": "regard.errors",
    "attend": "regard.attention.door",
    "masks": "regard.attention",
    "record": "regard.attention.record",
    "scope": "regard.attention.record",
}

__all__ = ["Attention", "AttentionMap", "RegardError", "__version__", "attend", "masks", "record", "scope"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name, None)
    value = importlib.import_module(f"{_WHERE[name]}.{name}") if value is None else value
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
