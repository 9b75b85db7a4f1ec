"""Read GGUF files of llama.cpp, which contain weights (usually quantised), config and tokenizer.

regard parses the header and checks all its counts before a library reads the file. It uses the weights as stored. A
file has "GGUF", the version, the numbers of tensors and entries, then the entries (name, kind, value), each tensor's
description (name, sizes, kind, offset), and the tensors' bytes. All numbers are little-endian.

llama.cpp reorders or transforms some weights on writing, and transformers reverses this on reading. regard reorders or
joins rows of quantised weights without dequantizing them. It reads small tensors in the same way as transformers.
"""

import copy
import functools
import importlib.util
import math
import mmap
import re
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import RegardError
from regard.gguf.quantised_rows import QuantisedRows
from regard.model_files.folder import check_ignored_files
from regard.model_files.limits import CheckpointSizes
from regard.model_files.stored_weight import StoredWeight
from regard.models.kinds import ModelKind

STRING, ARRAY = 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TENSORS, ENTRIES, AXES = 1 << 14, 1 << 12, 4  # maxima, ten times those of the largest published files
ITEMS = 1 << 16  # maximum number of list items in a file, or EACH times the largest tensor axis if that is more
ABOVE_ZERO = (".block_count", ".embedding_length", ".head_count", ".context_length")
LONG = 1 << 12  # lists with at least this many items belong to the vocabulary
WIDE = (0, 28)  # kinds of float32 and float64
# Architectures whose weights transformers changes within rows or reads differently from this module.
CHANGED = ("bloom", "gpt_oss", "gpt-oss", "lfm2", "mamba", "qwen35", "qwen35moe")
EACH = 8  # maximum number of list items per vocabulary entry (pieces, scores, kinds, merges)
MIN_QUANTISED = 1 << 14  # elements of a matrix; smaller matrices are dequantized on loading, for speed
WHOLE = ("F64", "F32", "I8", "I16", "I32", "I64")  # types that don't save memory or aren't used for weights
HALVES = {"F16": torch.float16, "BF16": torch.bfloat16}
EXPERTS = re.compile(r"(?P<name>.*\.ffn_(?P<part>gate|down|up)_exps)\.weight$")  # a layer's experts
COLUMNS = ("attn_qkv.weight", "ffn_down.weight", "ffn_up.weight", "attn_output.weight")  # of GPT-2, stored transposed


def _gguf_package() -> Any:
    """Import the package `gguf` as Any, because its type annotations are incomplete."""
    import gguf

    return gguf


@dataclass(frozen=True)
class Header:
    """The header of a GGUF file. values: its entries (a list's length for a list). kinds: number of tensors per kind.

    lists: number of items and of bytes of each long list, by its offset in the file.
    """

    held: CheckpointSizes
    values: dict[str, Any]
    kinds: Counter[int]
    lists: dict[int, tuple[int, int]]


@dataclass
class _ByteCursor:
    """A position in a GGUF file's bytes, which advances with each read."""

    data: Any
    at: int = 0
    items: int = 0
    lists: dict[int, tuple[int, int]] = field(default_factory=dict)
    struct_of: dict[str, struct.Struct] = field(default_factory=dict)

    def read_number(self, kind: str) -> Any:
        packed = self.struct_of.setdefault(kind, struct.Struct(f"<{kind}"))
        self.check_size(packed.size)
        (value,) = packed.unpack_from(self.data, self.at)
        self.at += packed.size
        return value

    def read_text(self) -> str:
        length = self.read_number("Q")
        self.check_size(length)
        self.at += length
        return bytes(self.data[self.at - length : self.at]).decode("utf-8", errors="replace")

    def check_size(self, size: int) -> None:
        """Raise ValueError if fewer than `size` bytes are left in the file."""
        if size > len(self.data) - self.at:
            raise ValueError(f"at byte {self.at:,} it needs {size:,} more, but has {len(self.data) - self.at:,}")

    def read_value(self) -> str | int | float | bool:
        """Read an entry's value. For a list, skip its items and return their number."""
        kind = self.read_number("I")
        if kind == STRING:
            return self.read_text()
        if kind != ARRAY:
            return self.read_number(_gguf_scalar_format(kind))
        start = self.at
        kind, count = self.read_number("I"), self.read_number("Q")
        self.items += count
        if kind == STRING:
            self.check_size(8 * count)
            for _ in range(count):
                length = self.read_number("Q")
                self.check_size(length)
                self.at += length
        else:
            size = struct.calcsize(f"<{_gguf_scalar_format(kind)}") * count
            self.check_size(size)
            self.at += size
        if count >= LONG:
            self.lists[start] = count, self.at - start
        return count


def read_gguf_header(path: Path, sizes: Mapping[int, tuple[int, int]]) -> Header:
    """Parse and check the header of a GGUF file. Raises RegardError if a count is impossible.

    sizes: number of weights and of bytes per block, for each kind of tensor.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _parse_gguf_header(_ByteCursor(data), sizes)
    except ValueError as error:  # mapping an empty file also raises ValueError
        raise RegardError(f"model {str(path)!r} is truncated or not a GGUF file ({error})") from None
    except OSError as error:
        raise RegardError(f"model {str(path)!r} cannot be read: {error.strerror or error}") from error


def _parse_gguf_header(cursor: _ByteCursor, sizes: Mapping[int, tuple[int, int]]) -> Header:
    """Parse a GGUF header at the file's start. Raises ValueError if it is damaged or a count is impossible."""
    if bytes(cursor.data[:4]) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    cursor.at = 4
    version, tensors, entries = cursor.read_number("I"), cursor.read_number("Q"), cursor.read_number("Q")
    if version not in (2, 3):
        raise ValueError(f"its version is {version}, expected 2 or 3")
    if tensors > TENSORS or entries > ENTRIES:
        raise ValueError(f"it names {tensors:,} tensors and {entries:,} entries, no model has so many")
    values = {}
    for _ in range(entries):
        name = cursor.read_text()
        values[name] = cursor.read_value()
    numbers = size = largest = 0
    kinds: Counter[int] = Counter()
    for _ in range(tensors):
        name, axes = cursor.read_text(), cursor.read_number("I")
        if axes > AXES:
            raise ValueError(f"tensor {name[:80]!r} has {axes} axes, at most {AXES} are allowed")
        shape = [cursor.read_number("Q") for _ in range(axes)]
        kind, _ = cursor.read_number("I"), cursor.read_number("Q")
        if kind not in sizes:
            raise ValueError(f"tensor {name[:80]!r} is of the unknown kind {kind}")
        block, bytes_of_block = sizes[kind]
        numbers += math.prod(shape)
        size += -(-math.prod(shape) // block) * bytes_of_block
        largest = max(largest, *shape, 0)
        kinds[kind] += 1
    if size > len(cursor.data) - cursor.at:
        raise ValueError(f"its tensors have {size:,} bytes, it has {len(cursor.data) - cursor.at:,} for them")
    if cursor.items > max(ITEMS, EACH * largest):
        raise ValueError(f"its lists have {cursor.items:,} items, no vocabulary of its size needs so many")
    for name, value in values.items():
        if not isinstance(value, int) or not name.endswith(("_count", "_length")):
            continue
        minimum = 1 if name.endswith(ABOVE_ZERO) else 0
        if value < minimum:
            raise ValueError(f"{name} is {value}, expected a whole number of {minimum} or more")
        if name.endswith("block_count") and value > tensors:
            raise ValueError(f"{name} is {value:,}, but the file has {tensors:,} tensors: fewer than one per layer")
    narrow = values.get("general.architecture") not in CHANGED and any(kind not in WIDE for kind in kinds)
    totals = CheckpointSizes(tensors, numbers, bytes=len(cursor.data), half=narrow)
    return Header(totals, values, kinds, cursor.lists)


def _gguf_scalar_format(kind: int) -> str:
    if kind not in SCALARS:
        raise ValueError("it has a list of lists" if kind == ARRAY else f"it has a value of the unknown kind {kind}")
    return SCALARS[kind]


def stored_gguf_tensors(reader: Any, model: nn.Module, config: Mapping[str, Any], family: str) -> dict[str, Tensor]:
    """Return a GGUF file's tensors by the model's parameter names, with large matrices as `StoredWeight`s.

    reader: gguf's reader of the file, mapped copy-on-write. config: the config that transformers reads from the file.
    family: the file's architecture.
    """
    from transformers import modeling_gguf_pytorch_utils as modeling

    processor = modeling.TENSOR_PROCESSORS.get(family, modeling.TensorProcessor)(config=dict(config))
    names = modeling.get_gguf_hf_weights_map(model, processor)
    stored: dict[str, Tensor] = {}
    first: dict[str, Any] = {}  # per layer, the first of the experts' gate and up matrices
    for tensor in reader.tensors:
        experts = EXPERTS.match(tensor.name)
        joined = None if experts is None else names.get(experts["name"])
        if experts is None or joined is None:
            name = "lm_head.weight" if family == "gpt2" and tensor.name == "output.weight" else names.get(tensor.name)
            if name is not None:
                stored[name] = _read_tensor(tensor, processor, family)
        elif experts["part"] == "down":
            stored[joined] = _as_stored(tensor) if _keep_as_stored(tensor) else _dequantized(tensor)
        elif joined in first:
            pair = first.pop(joined), tensor
            stored[joined] = _join_gate_and_up(*(pair if experts["part"] == "up" else reversed(pair)))
        else:
            first[joined] = tensor
    mapped: Any = getattr(getattr(reader, "mapped", None), "_mmap", None)
    if hasattr(mapped, "madvise"):  # not on Windows; frees the memory of pages that were read
        mapped.madvise(mmap.MADV_DONTNEED)
    return stored


def _read_tensor(tensor: Any, processor: Any, family: str) -> Tensor:
    """Return a tensor in the model's layout. Large tensors are kept as stored, others are dequantized."""
    if not _keep_as_stored(tensor):
        return _dequantized(tensor, lambda x: processor.process(x, tensor.name, parsed_parameters={}).weights)
    weight = _as_stored(tensor)
    if family == "gpt2" and any(name in tensor.name for name in COLUMNS):
        return weight.t()
    if family == "llama":
        rows = np.arange(len(weight))
        order = processor.process(rows[:, None], tensor.name).weights[:, 0]
        return weight if np.array_equal(order, rows) else weight[torch.from_numpy(order.copy())]
    return weight  # transformers changes only vectors of other architectures, except those in `CHANGED`


def _keep_as_stored(tensor: Any) -> bool:
    """Return whether to keep a tensor as stored, because it is a large matrix and smaller than in float32."""
    return len(tensor.shape) > 1 and tensor.n_elements >= MIN_QUANTISED and tensor.tensor_type.name not in WHOLE


def _as_stored(tensor: Any) -> Tensor:
    """Return a tensor as a `StoredWeight` whose data stays in the mapped file."""
    kind, data = tensor.tensor_type.name, torch.from_numpy(tensor.data)
    if kind in HALVES:
        return StoredWeight.of(data.view(HALVES[kind]))
    return StoredWeight.of(QuantisedRows(data, kind, _gguf_package().GGML_QUANT_SIZES[tensor.tensor_type]))


def _join_gate_and_up(gate: Any, up: Any) -> Tensor:
    """Join each expert's gate and up matrices, with the rows of gate first."""
    if not _keep_as_stored(gate) or gate.tensor_type != up.tensor_type:
        return torch.cat([_dequantized(gate), _dequantized(up)], 1)
    first, other = (rows.stored if isinstance(rows := _as_stored(part), StoredWeight) else rows for part in (gate, up))
    if isinstance(first, QuantisedRows) and isinstance(other, QuantisedRows):
        return StoredWeight.of(QuantisedRows(torch.cat([first.bytes, other.bytes], 1), first.kind, first.sizes))
    return torch.cat([_as_stored(gate), _as_stored(up)], 1)


def _dequantized(tensor: Any, turn: Callable[[Any], Any] = np.asarray) -> Float[Tensor, "..."]:
    """Dequantize a tensor, apply `turn`, and return the result in float32."""
    return torch.from_numpy(np.copy(turn(_gguf_package().dequantize(tensor.data, tensor.tensor_type)))).float()


PACKAGES = ("gguf", "accelerate")  # transformers needs both to read GGUF files
OWN_READER = "transformers.integrations.gguf.gguf_tokenizer_mapping"  # reads the vocabulary in newer releases
NOT_QUANTISED = ("F64", "F32", "F16", "BF16")  # tensor types without quantisation
CONVERTED = "converted to float32 for each product. Results may differ slightly from the original model's."
_PATCH_LOCK = threading.RLock()  # functions are patched for the whole process while a file is read


class File:
    """An opened and checked GGUF file. held: its tensors' sizes. options: arguments for transformers.

    kept: whether large matrices stay quantised, as in the file.
    """

    def __init__(self, path: Path, header: Header, kinds: dict[str, int]) -> None:
        self.folder, self.options, self.held = path.parent, {"gguf_file": path.name}, header.held
        self.kept = False
        self._header, self._kinds = header, Counter(kinds)

    @property
    def has_tokenizer(self) -> bool:
        """Return whether the file contains a tokenizer."""
        return "tokenizer.ggml.tokens" in self._header.values

    @property
    def note(self) -> str:
        """Return a sentence on the weights' quantisation for a model's status."""
        kinds = self._kinds
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        if all(kind in NOT_QUANTISED for kind in kinds):
            return f"The weights are not quantized (GGUF: {counts})." + f" They are {CONVERTED}" * self.kept
        return f"The weights are quantized (GGUF: {counts}) and " + (
            CONVERTED if self.kept else "converted to float32."
        )


class GGUFKind(ModelKind):
    """Models in a GGUF file, or in a folder whose weights are a single GGUF file."""

    def file(self, path: Path) -> Path | None:
        """Return the GGUF file at a path, None if there is none. Raises RegardError if a folder has several."""
        if not path.is_dir():
            return path if path.suffix.lower() == ".gguf" else None
        files = sorted(path.glob("*.gguf"))
        if not files or any(path.glob("*.safetensors")):
            return None
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise RegardError(f"{str(path)!r} holds {len(files)} GGUF files ({names}): name one of them")
        return files[0]

    def opened(self, path: Path) -> AbstractContextManager["File"]:
        """Check and open a GGUF file for a with block."""
        return opened_gguf_file(path)


GGUF = GGUFKind()


def checked_gguf_header(path: Path) -> Header:
    """Check that GGUF packages are installed, and parse a file's header without importing torch."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        names = " and ".join(missing)
        raise RegardError(f"model {str(path)!r} is a GGUF file, reading it needs {names}: pip install 'regard[gguf]'")
    header = read_gguf_header(path, {int(kind): size for kind, size in _gguf_package().GGML_QUANT_SIZES.items()})
    check_ignored_files(path.parent)
    return header


@contextmanager
def opened_gguf_file(path: Path) -> Iterator[File]:
    """Check a GGUF file, and let transformers read it faster inside the block.

    transformers opens the file several times, and makes a table of tensor names for each module. Each takes seconds, so
    the reader and the table are cached inside the block. transformers needs only the length of a vocabulary's lists, so
    their items aren't read.
    """
    header = checked_gguf_header(path)
    from transformers import modeling_gguf_pytorch_utils as modeling

    package = _gguf_package()
    kinds = {package.GGMLQuantizationType(kind).name: count for kind, count in header.kinds.items()}
    with _PATCH_LOCK:
        original, names, bar = package.GGUFReader, package.get_tensor_name_map, modeling.tqdm
        parse, values, load = modeling._gguf_parse_value, dict[int, Any](), modeling.load_gguf_checkpoint
        file = File(path, header, kinds)
        read_by = _reader_class(header.lists if importlib.util.find_spec(OWN_READER) else {})

        def cached_value(part: Any, kind: Any) -> Any:
            if id(part) not in values:  # the reader keeps every part, so ids stay unique
                values[id(part)] = parse(part, kind)
            return values[id(part)]

        @functools.cache
        def reader() -> Any:
            try:
                return read_by(path, "c")  # copy-on-write: torch tensors are writable
            except Exception as error:  # it follows offsets in the file and can raise any exception
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise RegardError(f"model {str(path)!r} is truncated or not a GGUF file ({reason})") from error

        def cached_reader(name: Any, *args: Any, **options: Any) -> Any:
            same = not args and not options and Path(name).resolve() == path.resolve()
            return reader() if same else original(name, *args, **options)

        @functools.cache
        def config() -> Any:
            return load(path, return_tensors=False)

        def checkpoint(name: Any, return_tensors: bool = False, model_to_load: Any = None, **options: Any) -> Any:
            if Path(name).resolve() != path.resolve() or (return_tensors and not file.kept):
                return load(name, return_tensors=return_tensors, model_to_load=model_to_load, **options)
            configuration = copy.deepcopy(config())
            if return_tensors:
                family = header.values["general.architecture"]
                configuration["tensors"] = stored_gguf_tensors(reader(), model_to_load, configuration["config"], family)
            return configuration

        package.GGUFReader, package.get_tensor_name_map = cached_reader, functools.cache(names)
        modeling._gguf_parse_value, modeling.load_gguf_checkpoint = cached_value, checkpoint  # type: ignore[assignment]
        modeling.tqdm = lambda items, **_: items  # can't be switched off by transformers' setting for progress bars
        try:
            yield file
        finally:
            package.GGUFReader, package.get_tensor_name_map, modeling.tqdm = original, names, bar
            modeling._gguf_parse_value, modeling.load_gguf_checkpoint = parse, load


def _reader_class(lists: Mapping[int, tuple[int, int]]) -> Any:
    """Return a subclass of gguf's reader that skips lists. lists: number of items and of bytes, by offset."""
    package = _gguf_package()
    placeholder = np.zeros(1, np.uint32)  # for the items of skipped lists

    class ArrayReader(package.GGUFReader):  # type: ignore[name-defined]
        data: Any
        mapped: Any = None

        def _get(self, offset: int, *args: Any, **options: Any) -> Any:
            if self.mapped is None:  # slicing a mapped array is slow
                self.mapped, self.data = self.data, np.asarray(self.data)
            return super()._get(offset, *args, **options)

        def _get_field_parts(self, offset: int, kind: Any) -> Any:
            if offset not in lists:
                return super()._get_field_parts(offset, kind)
            count, size = lists[offset]
            return size, [placeholder], [0] * count, [package.GGUFValueType.UINT32]

    return ArrayReader
