"""The description in a trace file: its fields, their types, the shapes of the tensors that they name, and `Choice`.

The description is JSON in the file's safetensors metadata: {"many": bool, "traces": [trace or pair, ...]}, beside the
format's name, version and digests (`regard.tensor_files`). A trace has the fields `TRACE`, "pooling" with the
fields `POOLING` where it is known how the model pools, and "turns" where it is of a chat, each with the fields `TURN`;
each attention layer in it has the fields `LAYER`. A tensor is described by its name, or by [name, order] where its axes
are stored in another order: axis n of what is stored is axis order[n] of the tensor.

Letters of shapes: L tokens, S keys, H query heads, G key/value heads, D query/key width, E value width, M model width,
W width of the embedding parts, K width of the last hidden state, V vocabulary, X columns of W_O. "#H" is H or 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import torch

from regard.checks import chosen_numbers
from regard.tensor_files.pieces import dtype_name
from regard.trace.attention_output import AttentionOutput, Norm, Scaling
from regard.trace.file_header import check_saving

TRACE = ("text", "names", "tokens", "vectors", "hidden_states", "attention", "cross", "status")
POOLING: dict[str, type] = {"modes": list, "normalise": bool, "lower_case": bool, "prompt": str}  # "pooling", maybe
TURN: dict[str, type] = {"role": str, "start": int, "end": int, "tokens": list}  # of "turns", maybe
LEFT_OUT: dict[str, type] = {"left_out": int}  # of "pooling", maybe
# Of "attention" and "cross". made: [layer, which of its calls] of every call, null where each layer made one. saved:
# the calls that there are.
ATTENTION = ("layers", "made", "attention_outputs", "saved")
LAYER = ("layer", "nth", "map", "heads", "keys", "tensors", "value", "attention_output")

VECTORS = {
    "learned": "L W", "positional": "L W", "segment": "L W", "input": "L W", "contextual": "L K", "logits": "L V",
}  # fmt: skip
HIDDEN_STATE = "L M"
VALUE = "G S E"
MAP_TENSORS = {"query": "1 H L D", "key": "1 G S D", "bias": "1 #H #L #S", "sinks": "H", "mask.keys": "1 S"}
DENSE_MASK = "1 #H #L #S"  # of mask.dense.0, mask.dense.1, ...
OUTPUT_TENSORS: dict[type, dict[str, str]] = {
    AttentionOutput: {"weight": "M X", "bias": "M", "residual": "L M", "projected": "L M"},
    Norm: {"weight": "M", "bias": "M"},
    Scaling: {"scale": "#L 1", "gain": "M", "added": "L M"},
}
OUTPUT_NEEDED = {AttentionOutput: ("weight", "residual", "projected"), Norm: (), Scaling: ("scale", "gain", "added")}
OUTPUT_PARTS: dict[str, type] = {"norm": Norm, "scaling": Scaling}
OUTPUT_KINDS = get_args(AttentionOutput.__annotations__["kind"])

TOKEN: tuple[tuple[type | None, ...], ...] = ((int,), (str,), (int,), (int,), (int, None), (bool,))  # as in `Token`
STATUS: dict[str, tuple[type | None, ...]] = {
    "model": (str,), "kernels": (list,), "device": (str,), "dtype": (str,), "difference": (float, None),
    "rows_compared": (int,), "embedding_difference": (float, None), "unknown": (list,), "dropped": (list,),
    "notes": (list,), "seconds": (float,), "compared_with": (str,),
}  # fmt: skip

LARGEST_ID = (1 << 31) - 1  # of tokens
LARGEST_COUNT = 1 << 16  # of layers, heads: more than any model has


@dataclass(frozen=True)
class Choice:
    """What of a trace is saved. layers, heads: their numbers, rising, None for all. dtype: that of wider tensors."""

    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    dtype: torch.dtype | None = None
    attention_outputs: bool = False

    @staticmethod
    def of(
        layers: Sequence[int] | None,
        heads: Sequence[int] | None,
        dtype: torch.dtype | str | None,
        attention_outputs: bool,
    ) -> "Choice":
        """Check the arguments layers, heads, dtype and attention_outputs of `save`.

        Raises:
            RegardError: numbers that cannot be, another dtype, or choices that exclude each other.
        """
        numbers = chosen_numbers("layer", layers), chosen_numbers("head", heads)
        name = dtype_name(dtype) if isinstance(dtype, torch.dtype) else dtype
        check_saving(name, attention_outputs, heads)
        return Choice(*numbers, None if name is None else getattr(torch, name), attention_outputs)
