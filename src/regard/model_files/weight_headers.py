"""Find a checkpoint's safetensors files and count their tensors by the headers, before anything is built from them.

Only safetensors are read, which cannot hold code. transformers follows an index wherever it leads, to pickles and to
other folders; so the index is checked first.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.files import check_regular
from regard.json_files import read_json
from regard.tensor_files.header import read_safetensors_header

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
MOST = 1 << 17  # tensors of a checkpoint: the largest ones that are published have 92,000
PLAIN = ("F64", "F32", "F16", "BF16", "I64", "BOOL")  # dtypes of weights that are not quantised, and of buffers
HALF = ("F16", "BF16")
MXFP4 = ("_blocks", "_scales")  # how the names of a weight's two tensors end that is in MXFP4, both of U8


@dataclass(frozen=True)
class Held:
    """A checkpoint's sizes. tensors: how many. numbers: in all. plain: whether none is quantised, but as in GGUF.

    files: of safetensors, in which they lie. bytes: that they take there. half: whether some are in half precision, or
    quantised as in GGUF or MXFP4. mxfp4: whether there are some in that, and none is quantised otherwise.
    """

    tensors: int
    numbers: int
    plain: bool = True
    files: tuple[Path, ...] = field(default=(), compare=False)
    bytes: int = field(default=0, compare=False)
    half: bool = field(default=False, compare=False)
    mxfp4: bool = field(default=False, compare=False)


def weight_files(folder: Path, config: Mapping[str, Any]) -> list[Path]:
    """Find the safetensors files of a model folder, each a regular file that lies in it.

    Links may lead to the blobs of the hub cache that the folder belongs to, and nowhere else outside.

    Raises:
        RegardError: there are no weights, only pickled ones, or the index or the config names something else.
    """
    name = config.get("transformers_weights") or (SINGLE if _weight_file_present(folder / SINGLE) else INDEX)
    where = repr(str(folder / "config.json"))
    if not isinstance(name, str) or not name.endswith((".safetensors", ".safetensors.index.json")):
        raise RegardError(f"{where}: transformers_weights is {name!r}, needs the name of a safetensors file")
    file = _weight_file_inside_folder(folder, name, where)
    if name == INDEX and not _weight_file_present(file):
        pickled = sorted(file.name for kind in PICKLES for file in folder.glob(kind))
        if pickled:
            raise RegardError(
                f"{str(folder)!r}: weights are pickled only ({pickled[0]}), which could run code; needs safetensors"
            )
        raise RegardError(f"{str(folder)!r}: no weights, needs {SINGLE}")
    if name.endswith(".json"):
        return [_weight_file_inside_folder(folder, shard, repr(str(file))) for shard in files_in_weight_index(file)]
    return [file]


def files_in_weight_index(index: Path) -> list[str]:
    """Read the names of the files in an index, each a plain name that ends in .safetensors.

    Raises:
        RegardError: the index cannot be read, or names anything else.
    """
    named = read_json(index, "index").get("weight_map")
    if not isinstance(named, dict) or not named:
        raise RegardError(f"{str(index)!r}: it has no weight_map, which names the file of each tensor")
    for tensor, file in named.items():
        if not isinstance(file, str) or not file.endswith(".safetensors"):
            raise RegardError(f"{str(index)!r}: tensor {tensor!r} is in {file!r}, needs a safetensors file")
    names = sorted(set(named.values()))
    for name in names:
        _check_plain_file_name(name, repr(str(index)))
    return names


def held(files: Sequence[Path]) -> Held:
    """Count the tensors and numbers of safetensors files by their headers, each checked against its file's size.

    Raises:
        RegardError: a file is truncated or no safetensors file, or there are more tensors than any model has.
    """
    tensors = numbers = size = 0
    plain, half, some, only = True, False, False, True
    for file in files:
        check_regular(file, "weights")
        try:
            named = read_safetensors_header(file).tensors
            entries = named.values()
        except OSError as error:
            raise RegardError(f"{str(file)!r} cannot be read: {error.strerror or error}") from error
        except RegardError as error:
            raise RegardError(f"{str(file)!r} is truncated or no safetensors file ({error})") from error
        tensors += len(entries)
        if tensors > MOST:
            raise RegardError(f"{str(file)!r}: more than {MOST:,} tensors, no model has so many")
        packed = [entry for name, entry in named.items() if entry.dtype == "U8" and name.endswith(MXFP4)]
        some, only = some or bool(packed), only and all(each.dtype in PLAIN or each in packed for each in entries)
        numbers += sum(math.prod(entry.shape) for entry in entries) + sum(math.prod(entry.shape) for entry in packed)
        size += file.stat().st_size
        half = half or any(entry.dtype in HALF for entry in entries)
        plain = plain and all(entry.dtype in PLAIN for entry in entries)
        if any(entry.dtype == "C64" for entry in entries):
            raise RegardError(f"{str(file)!r} holds complex numbers, needs real ones")
    return Held(tensors, numbers, plain, tuple(files), size, half or some, some and only)


def _weight_file_inside_folder(folder: Path, name: str, where: str) -> Path:
    """A file of a folder, wherever links lead: in the folder, or among the blobs of its hub cache."""
    _check_plain_file_name(name, where)
    file = folder / name
    real, home = file.resolve(), folder.resolve()
    allowed = [home]
    if home.parent.name == "snapshots":  # models--owner--name/snapshots/revision, with models--owner--name/blobs
        allowed.append(home.parent.parent / "blobs")
    if not any(real.is_relative_to(each) for each in allowed):
        raise RegardError(f"{where}: {name!r} is a link to {str(real)!r}, outside the folder: copy the file into it")
    if _weight_file_present(file) or name != INDEX:
        check_regular(file, "weights")
    return file


def _check_plain_file_name(name: str, where: str) -> None:
    """Check that a name cannot lead out of its folder, on any system."""
    if any(each in name for each in "/\\:\0") or name.startswith("."):
        raise RegardError(f"{where}: weights are in {name!r}, needs the plain name of a file in the folder")


def _weight_file_present(file: Path) -> bool:
    """Whether there is something of that name, be it a link into nothing."""
    return file.exists() or file.is_symlink()
