"""Many texts: embed them once, keep what every word's embedding and attention were, and ask the store about it.

regard.corpus.embed("texts/", "texts.store")
with regard.corpus.Store("texts.store") as store:
    print(store.find("bank"))

Names are loaded when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.corpus.embed_texts import EmbedReport as EmbedReport
    from regard.corpus.embed_texts import embed as embed
    from regard.corpus.ray_runner import on_ray as on_ray
    from regard.corpus.reading.document import Columns as Columns
    from regard.corpus.settings import Settings as Settings
    from regard.corpus.settings import Where as Where
    from regard.corpus.store import Store as Store

_WHERE = {
    "Columns": "reading.document",
    "EmbedReport": "embed_texts",
    "Settings": "settings",
    "Store": "store",
    "Where": "settings",
    "embed": "embed_texts",
    "on_ray": "ray_runner",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'regard.corpus' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"regard.corpus.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
