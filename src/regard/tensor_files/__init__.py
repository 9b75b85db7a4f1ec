"""Sealed files: safetensors whose description and tensors carry digests, and which are read strictly.

Traces and attention maps are such files. A digest finds damage (a bit that flipped on a disk or on its way), not
tampering: who can write into a file can write its digests as well.
"""

from regard.tensor_files.digests import PENDING, digest_of, hasher, unsound
from regard.tensor_files.file import DIGESTS, HEADER_LIMIT, Opened, fill_in, read, write
from regard.tensor_files.values import exactly, finite, typed, whole_number

__all__ = [
    "DIGESTS",
    "HEADER_LIMIT",
    "PENDING",
    "Opened",
    "digest_of",
    "exactly",
    "fill_in",
    "finite",
    "hasher",
    "read",
    "typed",
    "unsound",
    "whole_number",
    "write",
]
