"""Numbers as a page carries them: byte planes, deflated, in base64; vectors as int16 with one scale each, or float32.

Byte planes: byte 0 of all numbers, then byte 1 of all, and so on, lowest bytes first. The planes of high bytes have
little to say and deflate well. A vector's scale is its largest component / 32767, so that an int16 is off by half of
that at most. `web/src/data/format.ts` is the other half of this module.
"""

import hashlib
import zlib
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError

Data = dict[str, object]  # a part of the data that a page has
Encoding = Literal["int16", "float32"]
ENCODINGS: tuple[Encoding, ...] = ("int16", "float32")
DTYPES = ("int16", "uint16", "int32", "float32")
LARGEST = 32767  # the largest int16; its negative is the smallest that is used
LEVEL = 6  # of zlib: level 9 takes three times as long for half a percent
VECTOR_STRATEGY = zlib.Z_RLE  # vectors' bytes seldom repeat: it takes a third of the time, for fewer bytes


@dataclass
class NumberStore:
    """The numbers of one page, deflated: what `<script id="numbers-{at}">` has is blobs[at] in base64.

    encoding: how vectors are written.
    """

    encoding: Encoding = "int16"
    blobs: list[bytes] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)  # where the bytes of a digest are

    def __post_init__(self) -> None:
        if self.encoding not in ENCODINGS:
            raise RegardError(f"numbers: got {self.encoding!r}, expected {' or '.join(map(repr, ENCODINGS))}")

    def add(self, numbers: np.ndarray | Tensor, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> dict[str, object]:
        """Keep an array, equal ones once; returns where it is, as the page's data says it. strategy: of zlib."""
        array = numbers.detach().cpu().numpy() if isinstance(numbers, Tensor) else numbers
        assert str(array.dtype) in DTYPES
        planes = page_number_byte_planes(array)
        digest = hashlib.sha256(planes).digest()
        at = self._known.setdefault(digest, len(self.blobs))
        if at == len(self.blobs):
            deflate = zlib.compressobj(LEVEL, strategy=strategy)
            self.blobs.append(deflate.compress(planes) + deflate.flush())
        return {"at": at, "dtype": str(array.dtype), "shape": list(array.shape)}

    def add_vectors(self, vectors: Float[Tensor, "*n D"]) -> tuple[dict[str, object], Float[Tensor, "*n D"]]:
        """Keep vectors; returns what the page's data says, and the vectors as the page will have them, in float32."""
        if self.encoding == "float32":
            exact = vectors.detach().float().cpu()
            return {"values": self.add(exact, VECTOR_STRATEGY), "scales": None}, exact
        values, scales = vectors_rounded_for_page(vectors.detach().cpu())
        says: dict[str, object] = {"values": self.add(values, VECTOR_STRATEGY), "scales": self.add(scales)}
        return says, values.float() * scales[..., None]

    @property
    def size(self) -> int:
        """The size of all numbers in a file in bytes, in base64."""
        return sum(4 * -(-len(blob) // 3) for blob in self.blobs)


def page_number_byte_planes(array: np.ndarray) -> bytes:
    """Write the numbers' lowest bytes first, then the next ones, up to the highest."""
    width = array.dtype.itemsize
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little.reshape(-1).view(np.uint8).reshape(-1, width).T).tobytes()


def vectors_rounded_for_page(vectors: Float[Tensor, "*n D"]) -> tuple[Tensor, Float[Tensor, "*n"]]:
    """Round vectors to int16 with one float32 scale each: vector ≈ int16 × scale. A vector of zeros has the scale 0.

    Scales are rounded up to 8 bits, which deflate to half and make steps at most 1 % coarser.
    """
    wide = vectors.double()
    largest = wide.abs().amax(-1) if wide.shape[-1] else wide.new_zeros(wide.shape[:-1])
    scales = page_numbers_in_bits((largest / LARGEST).float(), 8, up=True)
    divisors = torch.where(scales == 0, 1.0, scales.double())
    return (wide / divisors[..., None]).round().clamp(-LARGEST, LARGEST).to(torch.int16), scales


def page_numbers_in_bits(numbers: Float[Tensor, "*n"], bits: int, *, up: bool = False) -> Float[Tensor, "*n"]:
    """Round positive float32 numbers to so many bits, the leading 1 counted; the others are 0 and deflate to nothing.

    up: never below the number, else to the nearest.
    """
    step = 1 << (24 - bits)
    whole = numbers.contiguous().view(torch.int32)
    return ((whole + (step - 1 if up else step // 2)) & -step).view(torch.float32)


def vector_bytes_in_page(shape: tuple[int, ...], encoding: Encoding) -> int:
    """The size of vectors in bytes, before compression."""
    count = int(np.prod(shape[:-1]))
    return count * shape[-1] * 4 if encoding == "float32" else count * (shape[-1] * 2 + 4)
