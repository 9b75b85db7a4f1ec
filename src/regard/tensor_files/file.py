"""Write and read tensor files: a description with digests, and tensors that are mapped and checked when first read."""

import hashlib
import json
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.tensor_files.digests import PENDING, Check, MappedTensor, bytes_of, hasher, why_invalid
from regard.tensor_files.header import CODES, HEADER_LIMIT, Entry, header_length, parse, read_header
from regard.tensor_files.values import expect_fields, expect_type

KEY, OWN = "regard", "regard.digest"  # of the metadata: the description, and its digest
VERSION = 1
DIGESTS = "digests"  # of the description: of each tensor
ALIGNED = 64  # bytes: where torch's own allocations begin, so that products of opened tensors run as those traced did


class TensorFile:
    """A file that was opened. description: without its digests. tensors: by name, as they lie in it, unchecked.

    Pass tensors on by `guarded` alone, which has them checked when they are first read.
    """

    def __init__(self, path: Path, description: dict[str, Any], tensors: dict[str, Tensor], digests: dict[str, str]):
        self.description, self.tensors = description, tensors
        self._path, self._digests = str(path), digests
        self._checks: dict[tuple[str, bool], Check] = {}

    def guarded(self, name: str, tensor: Tensor, *, minus_inf: bool = False) -> Tensor:
        """The tensor of that name, or a view of it, to be checked when it is first read.

        minus_inf: whether -inf may stand in it, as in a bias.
        """
        if (name, minus_inf) not in self._checks:
            stored, digest = self.tensors[name], self._digests[name]
            self._checks[name, minus_inf] = Check(self._path, name, stored, digest, minus_inf)
        return MappedTensor.of(tensor, self._checks[name, minus_inf])

    def verify(self) -> None:
        """Check every tensor that was passed on, now.

        Raises:
            RegardError: a tensor is not what was saved, or holds NaN or infinity; it is named.
        """
        for check in self._checks.values():
            check.run()


def read(path: Path, form: str) -> TensorFile:
    """Open a file of a form ("regard trace"): all but the numbers of its tensors is read and checked.

    Raises:
        RegardError: it is none, is of another version, or is cut short or damaged; without the file's name.
        OSError: the file system refuses.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise RegardError("it is no regular file")
    if status.st_size < 10:
        raise RegardError("it is no safetensors file")
    with path.open("rb"):
        pass  # a refusal of the file system has better words here
    try:
        whole = torch.from_file(str(path), shared=False, size=status.st_size, dtype=torch.uint8)
    except RuntimeError as error:
        raise RegardError(f"it cannot be mapped into memory ({str(error).splitlines()[0]})") from error
    length = header_length(whole[:9].numpy().tobytes(), status.st_size)
    metadata, entries = read_header(whole[8 : 8 + length].numpy().tobytes(), status.st_size)
    description = _description(metadata, form)
    digests = expect_fields("its digests", description.pop(DIGESTS, None), entries)
    for name, digest in digests.items():
        if len(expect_type(f"the digest of {name!r}", digest, str)) != len(PENDING):
            raise RegardError(f"the digest of {name!r} has {len(digest)} digits, needs {len(PENDING)}")
    return TensorFile(path, description, {name: _tensor(whole, name, each) for name, each in entries.items()}, digests)


def metadata_of(form: str, description: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, str]:
    """The metadata of a file of a form."""
    told = json.dumps({"format": form, "version": VERSION, **description, DIGESTS: dict(digests)}, allow_nan=False)
    pending = any(digest == PENDING for digest in digests.values())
    return {KEY: told, OWN: PENDING if pending else hashlib.sha256(told.encode()).hexdigest()}


def write(
    file: Path,
    form: str,
    description: Mapping[str, Any],
    tensors: Iterable[tuple[str, torch.dtype, tuple[int, ...], bool, Iterator[Tensor]]],
) -> None:
    """Write a file, one part of a tensor after the other: no copy of all or of one tensor is made.

    tensors: (name, dtype, shape, whether it may hold -inf, its parts, contiguous and in their order) of each.

    Raises:
        RegardError: the description is too long, or a tensor holds NaN or infinity.
    """
    tensors = list(tensors)
    spans: dict[str, Any] = {}
    at = 0
    for name, dtype, shape, _, _ in tensors:
        end = at + torch.Size(shape).numel() * dtype.itemsize
        spans[name] = {"dtype": CODES[dtype], "shape": list(shape), "data_offsets": [at, end]}
        at = end
    digests = dict.fromkeys(spans, PENDING)  # they are as long as those that take their places at the end
    begun = _head(spans, metadata_of(form, description, digests))
    with file.open("wb") as out:
        out.write(begun)
        for name, dtype, shape, minus_inf, parts in tensors:
            found = hasher(dtype, shape)
            for part in parts:
                why = why_invalid(part, minus_inf)
                if why is not None:
                    raise RegardError(f"tensor {name!r} holds {why}: it cannot be saved")
                lying = bytes_of(part).numpy().data
                found.update(lying)
                out.write(lying)
            digests[name] = found.hexdigest()
        out.seek(0)
        out.write(_head(spans, metadata_of(form, description, digests)))


def _head(spans: Mapping[str, Any], metadata: Mapping[str, str]) -> bytes:
    """A file's first bytes, up to the tensors'."""
    told = json.dumps({"__metadata__": dict(metadata), **spans}).encode()
    told += b" " * (-(8 + len(told)) % ALIGNED)
    if len(told) > HEADER_LIMIT:
        raise RegardError(
            f"what describes these traces takes {len(told)} bytes, a file may hold {HEADER_LIMIT}: save fewer texts"
        )
    return len(told).to_bytes(8, "little") + told


def _description(metadata: Mapping[str, str], form: str) -> dict[str, Any]:
    """What a file says of itself, where it is of a form."""
    if KEY not in metadata or OWN not in metadata:
        raise RegardError("it is a safetensors file, but none that regard saved")
    expect_fields("its metadata", dict(metadata), (KEY, OWN))
    try:
        right = hashlib.sha256(metadata[KEY].encode()).hexdigest() == metadata[OWN]
    except UnicodeEncodeError:
        right = False
    if not right:
        raise RegardError("it is damaged: its description is not what was saved")
    content = expect_type("its description", parse(metadata[KEY], "its description"), dict)
    for name in ("format", "version"):
        if name not in content:
            raise RegardError(f"its description: {name!r} is missing")
    if content["format"] != form:
        raise RegardError(f"it holds a {str(content['format'])[:40]!r}, needed is a {form!r}")
    version = expect_type("version", content["version"], int)
    if version != VERSION:
        newer = ": update it" if version > VERSION else ""
        raise RegardError(f"it has format version {version}, this regard reads version {VERSION}{newer}")
    return {name: value for name, value in content.items() if name not in ("format", "version")}


def _tensor(whole: Tensor, name: str, entry: Entry) -> Tensor:
    """A tensor where it lies in the mapped file."""
    if entry.begin % entry.dtype.itemsize:
        raise RegardError(f"its header is damaged: tensor {name!r} begins at byte {entry.begin}, within a number")
    return whole[entry.begin : entry.end].view(entry.dtype).view(entry.shape)
