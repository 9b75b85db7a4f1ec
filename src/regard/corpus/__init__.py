"""Embed many texts once into an index of every word's embedding and attention, and query that index.

regard.corpus.embed("texts/", "texts.store")
with regard.corpus.Store("texts.store") as store:
    print(store.find("bank"))

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from regard.lazy import lazy_names

if TYPE_CHECKING:
    from regard.corpus.embed_texts import EmbedReport as EmbedReport
    from regard.corpus.embed_texts import embed as embed
    from regard.corpus.reading.document import Columns as Columns
    from regard.corpus.settings import Settings as Settings
    from regard.corpus.settings import Where as Where
    from regard.corpus.store import Store as Store

__getattr__, __dir__ = lazy_names(__name__)
__all__ = __dir__()
