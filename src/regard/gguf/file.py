"""GGUF files, as llama.cpp writes them: weights, mostly quantised, config and tokenizer in one file. Read as data.

The header is read before a library reads it, with every count checked, then the weights as stored. The format: "GGUF",
version, how many tensors, how many entries; the entries (name, kind, value); what is said of each tensor (name, sizes,
kind, place); then the tensors' bytes. All numbers are little-endian.

llama.cpp reorders or transforms some weights when it writes them, and transformers undoes it. Rows of quantised weights
are reordered or joined without dequantizing them, and small tensors are read as transformers reads them.
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
from regard.model_files.folder import check_ignored_files
from regard.model_files.limits import CheckpointSizes
from regard.model_files.quantised_rows import QuantisedRows
from regard.model_files.stored_weight import StoredWeight
from regard.models.kinds import ModelKind

STRING, ARRAY = 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TENSORS, ENTRIES, AXES = 1 << 14, 1 << 12, 4  # the most of each: the largest files that are published have a tenth
ITEMS = 1 << 16  # items of all lists that nobody asks about; beyond that, some for each row of the largest tensor
ABOVE_ZERO = (".block_count", ".embedding_length", ".head_count", ".context_length")
LONG = 1 << 12  # items of a list that is a vocabulary's
WIDE = (0, 28)  # the kinds of float32 and float64
# Families whose weights transformers changes otherwise than by whole rows, or reads otherwise than this module.
CHANGED = ("bloom", "gpt_oss", "gpt-oss", "lfm2", "mamba", "qwen35", "qwen35moe")
EACH = 8  # a vocabulary has pieces, scores, kinds and merges
MIN_QUANTISED = 1 << 14  # numbers of a matrix: smaller ones are dequantized at once, which makes them faster to use
WHOLE = ("F64", "F32", "I8", "I16", "I32", "I64")  # kinds that are not smaller than float32, or of no weight
HALVES = {"F16": torch.float16, "BF16": torch.bfloat16}
EXPERTS = re.compile(r"(?P<name>.*\.ffn_(?P<part>gate|down|up)_exps)\.weight$")  # of all experts of a layer
COLUMNS = ("attn_qkv.weight", "ffn_down.weight", "ffn_up.weight", "attn_output.weight")  # of GPT-2, stored transposed


def _gguf() -> Any:
    """The package of the extra, whose types aren't complete."""
    import gguf

    return gguf


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
        """Raise ValueError if so many bytes would lie beyond the file's end."""
        if size > len(self.data) - self.at:
            raise ValueError(f"at byte {self.at:,} it needs {size:,} more, but has {len(self.data) - self.at:,}")

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
        raise RegardError(f"model {str(path)!r} is truncated or not a GGUF file ({error})") from None
    except OSError as error:
        raise RegardError(f"model {str(path)!r} cannot be read: {error.strerror or error}") from error


def _walked_gguf_header(walk: _Walk, sizes: Mapping[int, tuple[int, int]]) -> Header:
    if bytes(walk.data[:4]) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    walk.at = 4
    version, tensors, entries = walk.number("I"), walk.number("Q"), walk.number("Q")
    if version not in (2, 3):
        raise ValueError(f"its version is {version}, expected 2 or 3")
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
            raise ValueError(f"tensor {name[:80]!r} has {axes} axes, at most {AXES} are allowed")
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
            raise ValueError(f"{name} is {value}, expected a whole number of {least} or more")
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
    return weight  # the others turn vectors alone; `CHANGED` has the families that do more


def _is_kept(tensor: Any) -> bool:
    """Whether a tensor is a large matrix, or several, that is smaller than in float32."""
    return len(tensor.shape) > 1 and tensor.n_elements >= MIN_QUANTISED and tensor.tensor_type.name not in WHOLE


def _stored(tensor: Any) -> Tensor:
    """A tensor's numbers where they are in the mapped file, as a `StoredWeight`."""
    kind, data = tensor.tensor_type.name, torch.from_numpy(tensor.data)
    if kind in HALVES:
        return StoredWeight.of(data.view(HALVES[kind]))
    return StoredWeight.of(QuantisedRows(data, kind, _gguf().GGML_QUANT_SIZES[tensor.tensor_type]))


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
    return torch.from_numpy(np.copy(turn(_gguf().dequantize(tensor.data, tensor.tensor_type)))).float()


PACKAGES = ("gguf", "accelerate")  # transformers asks for both before it reads such a file
OWN_READER = "transformers.integrations.gguf.gguf_tokenizer_mapping"  # reads vocabularies in releases that have it
NOT_QUANTISED = ("F64", "F32", "F16", "BF16")  # tensor types that are not quantised
CONVERTED = "converted to float32 for each product. Results may differ slightly from the original model's."
_ONE = threading.RLock()  # what is changed for one file while it is read is changed for the process


class File:
    """A checked GGUF file. held: the sizes of its tensors. options: arguments with which transformers reads it.

    kept: whether its large matrices are to stay quantised, as the file has them.
    """

    def __init__(self, path: Path, header: Header, kinds: dict[str, int]) -> None:
        self.folder, self.options, self.held = path.parent, {"gguf_file": path.name}, header.held
        self.kept = False
        self._header, self._kinds = header, Counter(kinds)

    @property
    def has_tokenizer(self) -> bool:
        """Whether it brings a tokenizer along."""
        return "tokenizer.ggml.tokens" in self._header.values

    @property
    def note(self) -> str:
        """Write the note of a status."""
        kinds = self._kinds
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        if all(kind in NOT_QUANTISED for kind in kinds):
            return f"The weights are not quantized (GGUF: {counts})." + f" They are {CONVERTED}" * self.kept
        return f"The weights are quantized (GGUF: {counts}) and " + (
            CONVERTED if self.kept else "converted to float32."
        )


class GGUFKind(ModelKind):
    """A GGUF file, or a folder whose only weights are one."""

    def file(self, path: Path) -> Path | None:
        """Find the GGUF file that a path means. Raises RegardError for a folder with several."""
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
        """Check and open a GGUF file."""
        return opened_gguf_file(path)


GGUF = GGUFKind()


def checked_gguf_header(path: Path) -> Header:
    """Check a GGUF file by its header and by the files beside it, without torch."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        needed = " and ".join(missing)
        raise RegardError(f"model {str(path)!r} is a GGUF file, reading it needs {needed}: pip install 'regard[gguf]'")
    header = read_gguf_header(path, {int(kind): size for kind, size in _gguf().GGML_QUANT_SIZES.items()})
    check_ignored_files(path.parent)
    return header


@contextmanager
def opened_gguf_file(path: Path) -> Iterator[File]:
    """Check and open a GGUF file.

    Inside the block transformers, which opens the file again for each part that it reads and makes a table of tensor
    names again for each module, is given the same reader and the same table: each of the two takes seconds. Of the
    lists of a vocabulary it asks how long they are: their items aren't read.
    """
    header = checked_gguf_header(path)
    from transformers import modeling_gguf_pytorch_utils as theirs

    package = _gguf()
    kinds = {package.GGMLQuantizationType(kind).name: count for kind, count in header.kinds.items()}
    with _ONE:
        original, names, bar = package.GGUFReader, package.get_tensor_name_map, theirs.tqdm
        parse, values, read = theirs._gguf_parse_value, dict[int, Any](), theirs.load_gguf_checkpoint
        file = File(path, header, kinds)
        read_by = _reader_class(header.lists if importlib.util.find_spec(OWN_READER) else {})

        def value(part: Any, kind: Any) -> Any:
            if id(part) not in values:  # the reader keeps every part, so that no other gets its number
                values[id(part)] = parse(part, kind)
            return values[id(part)]

        @functools.cache
        def reader() -> Any:
            try:
                return read_by(path, "c")  # a tensor of torch is writable
            except Exception as error:  # it walks the file by the file's own numbers, and raises what those lead it to
                why = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise RegardError(f"model {str(path)!r} is truncated or not a GGUF file ({why})") from error

        def known(name: Any, *args: Any, **options: Any) -> Any:
            same = not args and not options and Path(name).resolve() == path.resolve()
            return reader() if same else original(name, *args, **options)

        @functools.cache
        def config() -> Any:
            return read(path, return_tensors=False)

        def checkpoint(name: Any, return_tensors: bool = False, model_to_load: Any = None, **options: Any) -> Any:
            if Path(name).resolve() != path.resolve() or (return_tensors and not file.kept):
                return read(name, return_tensors=return_tensors, model_to_load=model_to_load, **options)
            configuration = copy.deepcopy(config())
            if return_tensors:
                family = header.values["general.architecture"]
                configuration["tensors"] = stored_gguf_tensors(reader(), model_to_load, configuration["config"], family)
            return configuration

        package.GGUFReader, package.get_tensor_name_map = known, functools.cache(names)
        theirs._gguf_parse_value, theirs.load_gguf_checkpoint = value, checkpoint  # type: ignore[assignment]
        theirs.tqdm = lambda items, **_: items  # its progress bar does not obey the library's switch
        try:
            yield file
        finally:
            package.GGUFReader, package.get_tensor_name_map, theirs.tqdm = original, names, bar
            theirs._gguf_parse_value, theirs.load_gguf_checkpoint = parse, read


def _reader_class(lists: Mapping[int, tuple[int, int]]) -> Any:
    """gguf's reader, which passes over lists. lists: by the place where one begins how many items and bytes it has."""
    package = _gguf()
    nothing = np.zeros(1, np.uint32)  # stands for each item

    class ArrayReader(package.GGUFReader):  # type: ignore[name-defined]
        data: Any
        mapped: Any = None

        def _get(self, offset: int, *args: Any, **options: Any) -> Any:
            if self.mapped is None:  # a mapped array makes a mapped array of each of its parts, slowly
                self.mapped, self.data = self.data, np.asarray(self.data)
            return super()._get(offset, *args, **options)

        def _get_field_parts(self, at: int, kind: Any) -> Any:
            if at not in lists:
                return super()._get_field_parts(at, kind)
            count, size = lists[at]
            return size, [nothing], [0] * count, [package.GGUFValueType.UINT32]

    return ArrayReader
