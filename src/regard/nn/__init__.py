"""Layers and transformers to build, train and trace. All attention uses `regard.attend`."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_names

if TYPE_CHECKING:
    from regard.nn import bert as bert
    from regard.nn import config as config
    from regard.nn import decoding as decoding
    from regard.nn import folder as folder
    from regard.nn import layer as layer
    from regard.nn import multihead as multihead
    from regard.nn import positions as positions
    from regard.nn import single_head as single_head
    from regard.nn import transformer as transformer

__getattr__, __dir__ = lazy_names(__name__)
