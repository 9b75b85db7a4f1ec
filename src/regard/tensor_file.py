"""Write dataclasses and tensors to safetensors files, and read them again.

JSON describes the values: a dataclass by `type` and its fields, a tensor by its name in the file. A tensor that occurs
twice is stored once. safetensors maps a file into memory, so an opened tensor takes memory only when it is used.

The metadata fields are `format`, `version`, `description` (the JSON) and `sha256`, a checksum of the description and
all tensors. It detects damage, not tampering: anyone who can write the file can also write its checksum.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.errors import RegardError, first_line
from regard.files import check_regular, whole

TRACE, MAP, ATTENTION = "regard trace", "regard attention map", "regard attention"  # formats
VERSION = "2"
Types = dict[str, Callable[..., Any]]  # by type name: constructors that take the fields of a value


class Packer:
    """Convert values to JSON types, and collect their tensors by name. dtype: wider tensors are rounded to it."""

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype
        self.tensors: dict[str, Tensor] = {}
        self._names: dict[Any, tuple[str, Tensor]] = {}
        self._storages: set[int] = set()

    def pack(self, name: str, value: Any) -> object:
        """Convert a value to JSON types, from which `unpack` restores it. name: a prefix for its tensors' names."""
        if isinstance(value, Tensor):
            return self._pack_tensor(name, value.detach())
        if isinstance(value, (list, tuple)):
            return [self.pack(f"{name}.{n}", item) for n, item in enumerate(value)]
        if isinstance(value, dict):
            return self.pack_fields(name, value)
        if is_dataclass(value):
            values = {item.name: getattr(value, item.name) for item in fields(value)}
            return {"type": type(value).__name__} | self.pack_fields(name, values)
        return value

    def pack_fields(self, name: str, values: Mapping[str, Any]) -> dict[str, object]:
        """Convert named values, as `pack` does."""
        return {key: self.pack(f"{name}.{key}", value) for key, value in values.items()}

    def rounds(self, tensor: Tensor) -> bool:
        """Return whether a tensor is rounded to a narrower dtype in the file."""
        return tensor.is_floating_point() and self.dtype is not None and self.dtype.itemsize < tensor.dtype.itemsize

    def rounded(self, tensor: Tensor) -> Tensor:
        """Return a tensor in the dtype it has in the file. Raises RegardError if a number is too large for it."""
        narrow = tensor.to(self.dtype) if self.rounds(tensor) else tensor
        if self.rounds(tensor) and bool((narrow.isinf() & tensor.isfinite()).any()):
            raise RegardError(
                f"{self.dtype} cannot hold {float(tensor.abs().max()):.3g}: choose another dtype, or none"
            )
        return narrow

    def _pack_tensor(self, name: str, tensor: Tensor) -> dict[str, Any]:
        key = tensor.data_ptr(), tensor.device, tensor.dtype, tensor.shape, tensor.stride()
        if key not in self._names:
            self._names[key] = name, tensor  # keeps the tensor, so that its memory isn't reused
            once = tensor[tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.stride())]
            stored = self.rounded(once).cpu().contiguous()
            storage = stored.untyped_storage().data_ptr()
            self.tensors[name] = stored.clone() if storage in self._storages else stored  # safetensors forbids sharing
            self._storages.add(storage)
        return {"type": "Tensor", "name": self._names[key][0], "shape": list(tensor.shape)}


def unpack(value: Any, tensors: Mapping[str, Tensor], types: Types) -> object:
    """Restore a value from the result of `Packer.pack` and the tensors. Lists become tuples."""
    if isinstance(value, list):
        return tuple(unpack(item, tensors, types) for item in value)
    if not isinstance(value, dict):
        return value
    if value.get("type") == "Tensor":
        return tensors[value["name"]].expand(value["shape"])
    values = {key: unpack(item, tensors, types) for key, item in value.items() if key != "type"}
    return types[value["type"]](**values) if "type" in value else values


def write_tensor_file(file: str | Path, form: str, packed: Any, tensors: Mapping[str, Tensor]) -> None:
    """Write a packed value and its tensors to a safetensors file, atomically. form: its format, such as `TRACE`."""
    description = json.dumps(packed, separators=(",", ":"))
    metadata = {"format": form, "version": VERSION, "description": description}
    metadata["sha256"] = checksum(description, tensors)
    with whole(file) as temporary:
        try:
            save_file(dict(tensors), temporary, metadata)
            with safe_open(temporary, "numpy"):
                pass  # raises an error if the header exceeds 100 MB
        except SafetensorError as error:
            remedy = ": save fewer traces in one file" if "header" in str(error) else ""
            raise RegardError(f"cannot write {str(file)!r}: {first_line(error)}{remedy}") from error


@contextmanager
def open_tensor_file(file: str | Path, *formats: str, framework: str = "numpy") -> Iterator[Any]:
    """Open a safetensors file that has one of these formats. framework: "pt" for torch tensors."""
    kind = " or ".join(formats).replace("regard ", "")
    check_regular(file, f"{kind} file")
    try:
        with safe_open(file, framework) as opened:
            metadata = opened.metadata() or {}
            form, version = metadata.get("format"), metadata.get("version")
            if form not in formats:
                raise RegardError(f"its format is {form[:40]!r}" if form else "its format is unknown")
            if version != VERSION:
                raise RegardError(f"its version is {str(version)[:40]!r}, but this version of regard reads {VERSION!r}")
            yield opened
    except (OSError, SafetensorError, ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        reason = first_line(error).removeprefix("Error while deserializing header: ")[:200]
        raise RegardError(
            f"{str(file)!r} is not a valid {kind} file ({reason}): pass a file saved by regard"
        ) from error


def read_tensor_file(file: str | Path, formats: Mapping[str, Callable[..., Any] | Types], *, verify: bool) -> object:
    """Read the value in a safetensors file that has one of these formats. verify: check the checksum first.

    formats: for each, the constructors for `unpack`, or a function that takes the description and the tensors.
    """
    with open_tensor_file(file, *formats, framework="pt") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        metadata, make = opened.metadata(), formats[opened.metadata()["format"]]
        unsigned = metadata["format"] == ATTENTION and "sha256" not in metadata  # written by another program
        if verify and not unsigned and checksum(metadata["description"], tensors) != metadata["sha256"]:
            raise RegardError("it is damaged: its checksum differs from the saved one")
        description = json.loads(metadata.get("description", "null"))
        return make(description, tensors) if callable(make) else unpack(description, tensors, make)


def checksum(description: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of a description and of every tensor's name, dtype, shape and bytes."""
    digest = hashlib.sha256(description.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        flat = tensor.as_strided((tensor.numel(),), (1,))  # a tensor with a single number may have any stride
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()
