"""Write and read tensor files: a description with digests, and tensors that are mapped and checked when first read."""

import json
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.tensor_files.description import PENDING, metadata_of, read_description
from regard.tensor_files.digests import CODES, Check, MappedTensor, bytes_of, hasher_of_tensor, why_invalid
from regard.tensor_files.header import HEADER_LIMIT, Entry, parse_header, safetensors_header_length

DTYPES = {code: dtype for dtype, code in CODES.items()}
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
        """Return the tensor of that name, or a view of it, to be checked when it is first read.

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


def read_tensor_file(path: Path, form: str) -> TensorFile:
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
    length = safetensors_header_length(whole[:9].numpy().tobytes(), status.st_size)
    header = parse_header(whole[8 : 8 + length].numpy().tobytes(), status.st_size)
    description, digests = read_description(header.metadata, form, header.tensors)
    tensors = {name: _tensor_of_mapped_file(whole, name, entry) for name, entry in header.tensors.items()}
    return TensorFile(path, description, tensors, digests)


def write(
    file: Path,
    form: str,
    description: Mapping[str, Any],
    tensors: Iterable[tuple[str, torch.dtype, tuple[int, ...], bool, Iterator[Tensor]]],
) -> None:
    """Write a file, one part of a tensor after the other: no copy of all or of one tensor is made.

    Args:
        file: where it is written.
        form: the format's name, such as "regard trace".
        description: what the tensors mean, in values that JSON can hold.
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
    digests = dict.fromkeys(spans, PENDING)  # as long as the digests that replace them at the end
    header = _header_bytes(spans, metadata_of(form, description, digests))
    with file.open("wb") as out:
        out.write(header)
        for name, dtype, shape, minus_inf, parts in tensors:
            digest = hasher_of_tensor(dtype, shape)
            for part in parts:
                why = why_invalid(part, minus_inf)
                if why is not None:
                    raise RegardError(f"tensor {name!r} holds {why}: it cannot be saved")
                data = bytes_of(part).numpy().data
                digest.update(data)
                out.write(data)
            digests[name] = digest.hexdigest()
        out.seek(0)
        out.write(_header_bytes(spans, metadata_of(form, description, digests)))


def _header_bytes(spans: Mapping[str, Any], metadata: Mapping[str, str]) -> bytes:
    """The bytes of a file before its tensors': their run is a multiple of ALIGNED."""
    header = json.dumps({"__metadata__": dict(metadata), **spans}).encode()
    header += b" " * (-(8 + len(header)) % ALIGNED)
    if len(header) > HEADER_LIMIT:
        raise RegardError(
            f"the description of these traces has {len(header)} bytes, a file may hold {HEADER_LIMIT}: save fewer texts"
        )
    return len(header).to_bytes(8, "little") + header


def _tensor_of_mapped_file(whole: Tensor, name: str, entry: Entry) -> Tensor:
    """A tensor where it lies in the mapped file."""
    if entry.dtype not in DTYPES:
        raise RegardError(f"tensor {name!r} is of {entry.dtype[:20]!r}, needs {', '.join(DTYPES)}")
    dtype = DTYPES[entry.dtype]
    if entry.begin % dtype.itemsize:
        raise RegardError(f"its header is damaged: tensor {name!r} begins at byte {entry.begin}, within a number")
    return whole[entry.begin : entry.end].view(dtype).view(entry.shape)
