"""Encode the numbers of a page as deflated byte planes in base64. Vectors are int16 with a scale each.

Byte planes have byte 0 of all numbers, then byte 1 of all numbers, and so on, lowest bytes first. The planes of high
bytes vary little and deflate well. A vector's scale is its largest component / 32767, so that the error of an int16 is
at most half a scale. `web/src/data/format.ts` reads these numbers.
"""

import hashlib
import zlib
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Data = dict[str, object]  # a part of a page's data, for JSON
DTYPES = ("int16", "uint16", "int32", "float32")
LARGEST = 32767  # the largest int16. Its negative is the smallest value in use
LEVEL = 6  # zlib's level: 9 takes three times as long and saves half a percent
VECTOR_STRATEGY = zlib.Z_RLE  # faster and smaller, because the bytes of vectors seldom repeat


@dataclass
class NumberStore:
    """The deflated arrays of a page: `<script id="numbers-{at}">` has blobs[at] in base64."""

    blobs: list[bytes] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)  # indices of blobs by the digest of their bytes

    def add(self, numbers: np.ndarray | Tensor, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> dict[str, object]:
        """Store an array, unless an equal array is stored. Returns its index, dtype and shape. strategy: zlib's."""
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
        """Store vectors. Returns their entry in the page's data, and the vectors as stored (rounded), in float32."""
        values, scales = vectors_rounded_for_page(vectors.detach().cpu())
        entry: Data = {"values": self.add(values, VECTOR_STRATEGY), "scales": self.add(scales)}
        return entry, values.float() * scales[..., None]

    @property
    def size(self) -> int:
        """The size of all stored arrays in bytes, as base64."""
        return sum(4 * -(-len(blob) // 3) for blob in self.blobs)


def page_number_byte_planes(array: np.ndarray) -> bytes:
    """Return an array's bytes in planes: the lowest bytes of all numbers, then the next bytes, up to the highest."""
    width = array.dtype.itemsize
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little.reshape(-1).view(np.uint8).reshape(-1, width).T).tobytes()


def vectors_rounded_for_page(vectors: Float[Tensor, "*n D"]) -> tuple[Tensor, Float[Tensor, "*n"]]:
    """Round vectors to int16 with one float32 scale each: vector ≈ int16 × scale. A vector of zeros has scale 0.

    Scales are rounded up to 8 significant bits. They then deflate to half, and steps are at most 1 % coarser.
    """
    wide = vectors.double()
    largest = wide.abs().amax(-1) if wide.shape[-1] else wide.new_zeros(wide.shape[:-1])
    scales = page_numbers_in_bits((largest / LARGEST).float(), 8, up=True)
    divisors = torch.where(scales == 0, 1.0, scales.double())
    return (wide / divisors[..., None]).round().clamp(-LARGEST, LARGEST).to(torch.int16), scales


def page_numbers_in_bits(numbers: Float[Tensor, "*n"], bits: int, *, up: bool = False) -> Float[Tensor, "*n"]:
    """Round positive float32 numbers to a number of significant bits. The other bits are 0 and deflate to nothing.

    up: round up instead of to the nearest.
    """
    step = 1 << (24 - bits)
    integers = numbers.contiguous().view(torch.int32)
    return ((integers + (step - 1 if up else step // 2)) & -step).view(torch.float32)


def vector_bytes_in_page(shape: tuple[int, ...]) -> int:
    """Return the size in bytes of vectors with this shape on a page, before compression."""
    return int(np.prod(shape[:-1])) * (shape[-1] * 2 + 4)
