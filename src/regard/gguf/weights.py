"""Read a GGUF file: its header before a library does, with every count checked, then its weights as stored.

The format: "GGUF", version, how many tensors, how many entries; the entries (name, kind, value); what is said of each
tensor (name, sizes, kind, place); then the tensors' bytes. All numbers are little-endian.

llama.cpp reorders or transforms some weights when it writes them, and transformers undoes it. Rows of quantised weights
are reordered or joined without dequantizing them, and small tensors are read as transformers reads them.
"""

import math
import mmap
import re
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import RegardError
from regard.model_files.limits import CheckpointSizes
from regard.model_files.quantised_rows import QuantisedRows
from regard.model_files.stored_weight import StoredWeight

STRING, ARRAY = 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TENSORS, ENTRIES, AXES = 1 << 14, 1 << 12, 4  # the most of each: the largest files that are published have a tenth
ITEMS = 1 << 16  # items of all lists that nobody asks about; beyond that, some for each row of the largest tensor
ABOVE_ZERO = (".block_count", ".embedding_length", ".head_count", ".context_length")
LONG = 1 << 12  # items of a list that is a vocabulary's
WIDE = (0, 28)  # the kinds of float32 and float64
# Families whose weights transformers changes otherwise than by whole rows, or does not read as `gguf_weights` does.
CHANGED = ("bloom", "gpt_oss", "gpt-oss", "lfm2", "mamba", "qwen35", "qwen35moe")
EACH = 8  # a vocabulary has pieces, scores, kinds and merges
MIN_QUANTISED = 1 << 14  # numbers of a matrix: smaller ones are dequantized at once, which makes them faster to use
WHOLE = ("F64", "F32", "I8", "I16", "I32", "I64")  # kinds that are not smaller than float32, or of no weight
HALVES = {"F16": torch.float16, "BF16": torch.bfloat16}
EXPERTS = re.compile(r"(?P<name>.*\.ffn_(?P<part>gate|down|up)_exps)\.weight$")  # of all experts of a layer
COLUMNS = ("attn_qkv.weight", "ffn_down.weight", "ffn_up.weight", "attn_output.weight")  # of GPT-2, stored transposed


@dataclass(frozen=True)
class Header:
    """A GGUF file's header. values: its entries, of lists their length. kinds: how many tensors of each kind.

    lists: of each long list, by the place where it begins, how many items and bytes it has.
    """

    held: CheckpointSizes
    values: dict[str, Any]
    kinds: Counter[int]
    lists: dict[int, tuple[int, int]]


@dataclass
class _Walk:
    """A place in a file's bytes, which moves on with what is read."""

    data: Any
    at: int = 0
    items: int = 0
    lists: dict[int, tuple[int, int]] = field(default_factory=dict)
    struct_of: dict[str, struct.Struct] = field(default_factory=dict)

    def number(self, kind: str) -> Any:
        packed = self.struct_of.setdefault(kind, struct.Struct(f"<{kind}"))
        self.check(packed.size)
        (value,) = packed.unpack_from(self.data, self.at)
        self.at += packed.size
        return value

    def text(self) -> str:
        length = self.number("Q")
        self.check(length)
        self.at += length
        return bytes(self.data[self.at - length : self.at]).decode("utf-8", errors="replace")

    def check(self, size: int) -> None:
        """Raise ValueError where so many bytes would lie beyond the file's end."""
        if size > len(self.data) - self.at:
            raise ValueError(f"at byte {self.at:,} it needs {size:,} more, it has {len(self.data) - self.at:,}")

    def value(self) -> str | int | float | bool:
        """An entry's value; of a list its length, after walking over its items."""
        kind = self.number("I")
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            return self.number(_gguf_scalar_format(kind))
        start = self.at
        kind, count = self.number("I"), self.number("Q")
        self.items += count
        if kind == STRING:
            self.check(8 * count)
            for _ in range(count):
                length = self.number("Q")
                self.check(length)
                self.at += length
        else:
            size = struct.calcsize(f"<{_gguf_scalar_format(kind)}") * count
            self.check(size)
            self.at += size
        if count >= LONG:
            self.lists[start] = count, self.at - start
        return count


def read_gguf_header(path: Path, sizes: Mapping[int, tuple[int, int]]) -> Header:
    """Read a file's header.

    sizes: of each kind of tensor, how many numbers a block has and how many bytes.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _walked_gguf_header(_Walk(data), sizes)
    except ValueError as error:  # an empty file cannot be mapped: a ValueError too
        raise RegardError(f"model {str(path)!r} is truncated or no GGUF file ({error})") from None
    except OSError as error:
        raise RegardError(f"model {str(path)!r} cannot be read: {error.strerror or error}") from error


def _walked_gguf_header(walk: _Walk, sizes: Mapping[int, tuple[int, int]]) -> Header:
    if bytes(walk.data[:4]) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    walk.at = 4
    version, tensors, entries = walk.number("I"), walk.number("Q"), walk.number("Q")
    if version not in (2, 3):
        raise ValueError(f"its version is {version}, versions 2 and 3 are read")
    if tensors > TENSORS or entries > ENTRIES:
        raise ValueError(f"it names {tensors:,} tensors and {entries:,} entries, no model has so many")
    values = {}
    for _ in range(entries):
        name = walk.text()
        values[name] = walk.value()
    numbers = size = largest = 0
    kinds: Counter[int] = Counter()
    for _ in range(tensors):
        name, axes = walk.text(), walk.number("I")
        if axes > AXES:
            raise ValueError(f"tensor {name[:80]!r} has {axes} axes, {AXES} are the most")
        shape = [walk.number("Q") for _ in range(axes)]
        kind, _ = walk.number("I"), walk.number("Q")
        if kind not in sizes:
            raise ValueError(f"tensor {name[:80]!r} is of the unknown kind {kind}")
        block, bytes_of_block = sizes[kind]
        numbers += math.prod(shape)
        size += -(-math.prod(shape) // block) * bytes_of_block
        largest = max(largest, *shape, 0)
        kinds[kind] += 1
    if size > len(walk.data) - walk.at:
        raise ValueError(f"its tensors have {size:,} bytes, it has {len(walk.data) - walk.at:,} for them")
    if walk.items > max(ITEMS, EACH * largest):
        raise ValueError(f"its lists have {walk.items:,} items, no vocabulary of its size needs so many")
    for name, value in values.items():
        if not isinstance(value, int) or not name.endswith(("_count", "_length")):
            continue
        least = 1 if name.endswith(ABOVE_ZERO) else 0
        if value < least:
            raise ValueError(f"{name} is {value}, needs a whole number of {least} or more")
        if name.endswith("block_count") and value > tensors:
            raise ValueError(f"{name} is {value:,}, it holds {tensors:,} tensors: less than one a layer")
    narrow = values.get("general.architecture") not in CHANGED and any(kind not in WIDE for kind in kinds)
    held = CheckpointSizes(tensors, numbers, bytes=len(walk.data), half=narrow)
    return Header(held, values, kinds, walk.lists)


def _gguf_scalar_format(kind: int) -> str:
    if kind not in SCALARS:
        raise ValueError("it has a list of lists" if kind == ARRAY else f"it has a value of the unknown kind {kind}")
    return SCALARS[kind]


def stored_gguf_tensors(reader: Any, model: nn.Module, config: Mapping[str, Any], family: str) -> dict[str, Tensor]:
    """Read the file's tensors by the names that the model has for them: large matrices as `StoredWeight`s.

    reader: gguf's, of a file that was opened so that it is copied where it is written. config: what transformers reads
    of it. family: the file's architecture.
    """
    from transformers import modeling_gguf_pytorch_utils as theirs

    processor = theirs.TENSOR_PROCESSORS.get(family, theirs.TensorProcessor)(config=dict(config))
    names = theirs.get_gguf_hf_weights_map(model, processor)
    stored: dict[str, Tensor] = {}
    first: dict[str, Any] = {}  # of each layer's experts the one of two matrices that came before the other
    for tensor in reader.tensors:
        experts = EXPERTS.match(tensor.name)
        joined = None if experts is None else names.get(experts["name"])
        if experts is None or joined is None:
            name = "lm_head.weight" if family == "gpt2" and tensor.name == "output.weight" else names.get(tensor.name)
            if name is not None:
                stored[name] = _read_tensor(tensor, processor, family)
        elif experts["part"] == "down":
            stored[joined] = _stored(tensor) if _is_kept(tensor) else _dequantized(tensor)
        elif joined in first:
            both = first.pop(joined), tensor
            stored[joined] = _joined(*(both if experts["part"] == "up" else reversed(both)))
        else:
            first[joined] = tensor
    mapped: Any = getattr(getattr(reader, "mapped", None), "_mmap", None)
    if hasattr(mapped, "madvise"):  # not on Windows; pages of the file that were copied are let go of
        mapped.madvise(mmap.MADV_DONTNEED)
    return stored


def _read_tensor(tensor: Any, processor: Any, family: str) -> Tensor:
    """A tensor as the model has it."""
    if not _is_kept(tensor):
        return _dequantized(tensor, lambda x: processor.process(x, tensor.name, parsed_parameters={}).weights)
    weight = _stored(tensor)
    if family == "gpt2" and any(name in tensor.name for name in COLUMNS):
        return weight.t()
    if family == "llama":
        rows = np.arange(len(weight))
        order = processor.process(rows[:, None], tensor.name).weights[:, 0]
        return weight if np.array_equal(order, rows) else weight[torch.from_numpy(order.copy())]
    return weight  # the others turn vectors alone; `gguf_header.CHANGED` has the families that do more


def _is_kept(tensor: Any) -> bool:
    """Whether a tensor is a large matrix, or several, that is smaller than in float32."""
    return len(tensor.shape) > 1 and tensor.n_elements >= MIN_QUANTISED and tensor.tensor_type.name not in WHOLE


def _stored(tensor: Any) -> Tensor:
    """A tensor's numbers where they lie in the mapped file, as a `StoredWeight`."""
    import gguf

    package: Any = gguf
    kind, data = tensor.tensor_type.name, torch.from_numpy(tensor.data)
    if kind in HALVES:
        return StoredWeight.of(data.view(HALVES[kind]))
    return StoredWeight.of(QuantisedRows(data, kind, package.GGML_QUANT_SIZES[tensor.tensor_type]))


def _joined(gate: Any, up: Any) -> Tensor:
    """Two matrices of each expert as one, the first's rows above the other's."""
    if not _is_kept(gate) or gate.tensor_type != up.tensor_type:
        return torch.cat([_dequantized(gate), _dequantized(up)], 1)
    one, other = (weight.stored if isinstance(weight := _stored(part), StoredWeight) else weight for part in (gate, up))
    if isinstance(one, QuantisedRows) and isinstance(other, QuantisedRows):
        return StoredWeight.of(QuantisedRows(torch.cat([one.bytes, other.bytes], 1), one.kind, one.sizes))
    return torch.cat([_stored(gate), _stored(up)], 1)


def _dequantized(tensor: Any, turn: Callable[[Any], Any] = np.asarray) -> Float[Tensor, "..."]:
    """A tensor in float32, turned."""
    import gguf

    package: Any = gguf
    return torch.from_numpy(np.copy(turn(package.dequantize(tensor.data, tensor.tensor_type)))).float()
