"""Dequantize blocks of numbers to float32, with the same bits as the package gguf, and multiply vectors by them.

A quantised row consists of blocks of 32 or 256 numbers. A block has a few bits per number and one or two float16
scales. In a block of 256, each group of 16 or 32 numbers also has a factor of a few bits. The kernels below dequantize
the most common kinds. gguf's NumPy code, which takes five times as long, dequantizes the others.

    kind          block: bytes                                            value of a number
    ------------  ------------------------------------------------------  ------------------------------------------
    Q4_0, Q5_0    32: scale d, (fifth bits,) 16 of nibbles                d · (q - 8), d · (q - 16)
    Q4_1, Q5_1    32: scale d, bias m, (fifth bits,) 16 of nibbles        d · q + m
    Q8_0          32: scale d, 32 of numbers                              d · q
    Q4_K, Q5_K    256: d, m, 12 of factors s and t, (32 of fifth bits,)   (d · s) · q - (m · t), for each 32
                  128 of nibbles
    MXFP4         32: 16 of nibbles, scale e in a separate tensor         FP4[q] · 2^(e - 127), lower nibble first
    Q6_K          256: 128 of nibbles, 64 of high bits, 16 of factors s   (d · s) · (q - 32), for each 16
                  and d
"""

from typing import Any

import numpy as np

from regard.attention.kernels.cpu.vector import compiled, force_wide_simd

LOW, FOUR, TWO = np.uint8(15), np.uint8(4), np.uint8(2)
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)  # float16 values, by their bits
# MXFP4 as in gpt-oss's safetensors. In GGUF files, blocks contain their scales, and the order of nibbles differs.
FP4 = np.array([sign * size for sign in (1, -1) for size in (0, 0.5, 1, 1.5, 2, 3, 4, 6)], np.float32)
with np.errstate(over="ignore"):
    POWERS = np.ldexp(np.float32(1), np.arange(256) - 127).astype(np.float32)  # the last is inf
# Half the numbers in a block of 32, passed to kernels as an argument. LLVM unrolls a constant count into scalars, but
HALF_BLOCK = 16  # vectorizes a variable count, which takes a third of the time
NO_FASTMATH: dict[str, Any] = {"fastmath": False}  # no fused multiply-add, since gguf's NumPy code rounds twice


def dequantize_blocks(kind: str, packed: np.ndarray, out: np.ndarray, scale_bytes: np.ndarray | None = None) -> None:
    """Dequantize the bytes of whole blocks into an array of float32 numbers. scale_bytes: separate scales of MXFP4."""
    if scale_bytes is not None:
        _mxfp4(packed, scale_bytes, out, FP4, POWERS, HALF_BLOCK)
        return
    if kind in KERNELS:
        KERNELS[kind](packed, out, HALVES, HALF_BLOCK)
        return
    import gguf

    package: Any = gguf
    out[:] = package.dequantize(packed[None], package.GGMLQuantizationType[kind])[0]


def scales(kind: str, packed: np.ndarray, scale_bytes: np.ndarray | None = None) -> np.ndarray | None:
    """Return the scales of quantised blocks, (blocks, 1 or 2); only scales can be infinite. None for other kinds."""
    if scale_bytes is not None:
        return POWERS[scale_bytes][:, None]
    if kind not in SCALES:
        return None
    size, first, last = SCALES[kind]
    return np.ascontiguousarray(packed.reshape(-1, size)[:, first:last]).view(np.float16)


@compiled(inline="always", **NO_FASTMATH)
def _read_float16(packed, byte, halves):
    """Read two bytes of a quantised block as a float16 number, and return it in float32."""
    return halves[np.uint32(packed[byte]) | (np.uint32(packed[byte + 1]) << np.uint32(8))]


@compiled(inline="always", **NO_FASTMATH)
def _read_uint32(packed, byte):
    """Read four bytes of a quantised block as an unsigned integer, the lowest byte first."""
    low = np.uint32(packed[byte]) | (np.uint32(packed[byte + 1]) << np.uint32(8))
    return low | (np.uint32(packed[byte + 2]) << np.uint32(16)) | (np.uint32(packed[byte + 3]) << np.uint32(24))


def _kernel_of_32(has_bias, fifth):
    """Compile the kernel for Q4_0, Q4_1, Q5_0 or Q5_1. Both arguments become constants."""
    size, start = 18 + 2 * has_bias + 4 * fifth, 2 + 2 * has_bias
    zero = np.int32(0 if has_bias else 16 if fifth else 8)

    @compiled(**NO_FASTMATH)
    def run(packed, out, halves, count):
        force_wide_simd()
        for b in range(len(out) // 32):
            byte, to = size * b, 32 * b
            d = _read_float16(packed, byte, halves)
            bias = -_read_float16(packed, byte + 2, halves) if has_bias else np.float32(0)
            bits = _read_uint32(packed, byte + start) if fifth else np.uint32(0)
            first = byte + start + 4 * fifth
            for j in range(count):
                high = ((bits >> np.uint32(j)) & np.uint32(1)) << np.uint32(4)
                out[to + j] = d * np.float32(np.int32(np.uint32(packed[first + j] & LOW) | high) - zero) - bias
            for j in range(count):
                high = ((bits >> np.uint32(j + 16)) & np.uint32(1)) << np.uint32(4)
                out[to + 16 + j] = d * np.float32(np.int32(np.uint32(packed[first + j] >> FOUR) | high) - zero) - bias

    return run


@compiled(**NO_FASTMATH)
def _q8_0(packed, out, halves, count):
    force_wide_simd()
    for b in range(len(out) // 32):
        byte, to = 34 * b, 32 * b
        d = _read_float16(packed, byte, halves)
        for j in range(2 * count):
            out[to + j] = d * np.float32(np.int8(packed[byte + 2 + j]))


@compiled(inline="always", **NO_FASTMATH)
def _read_factors(packed, byte, k):
    """Read the six-bit factors for the scale and bias of one of a block's 8 groups, k, from 12 bytes."""
    if k < 4:
        return packed[byte + k] & np.uint8(63), packed[byte + 4 + k] & np.uint8(63)
    bits = packed[byte + 4 + k]
    high, other = packed[byte + k - 4] >> np.uint8(6), packed[byte + k] >> np.uint8(6)
    return (bits & LOW) | (high << FOUR), (bits >> FOUR) | (other << FOUR)


def _kernel_of_256(fifth):
    """Compile the kernel for Q4_K or Q5_K. The argument becomes a constant."""
    size, start = 144 + 32 * fifth, 16 + 32 * fifth

    @compiled(**NO_FASTMATH)
    def run(packed, out, halves, count):
        force_wide_simd()
        for b in range(len(out) // 256):
            byte, to = size * b, 256 * b
            d, m = _read_float16(packed, byte, halves), _read_float16(packed, byte + 2, halves)
            for k in range(8):
                s, t = _read_factors(packed, byte + 4, k)
                scale, bias = d * np.float32(s), m * np.float32(t)
                nibbles, first = byte + start + 32 * (k >> 1), to + 32 * k
                shift, bit = np.uint8(4 * (k & 1)), np.uint8(k)
                for j in range(2 * count):
                    high = ((packed[byte + 16 + j] >> bit) & np.uint8(1)) << FOUR if fifth else np.uint8(0)
                    out[first + j] = scale * np.float32(((packed[nibbles + j] >> shift) & LOW) | high) - bias

    return run


@compiled(inline="always", **NO_FASTMATH)
def _less_32(number):
    """Convert a six-bit quantised number to float32 and subtract 32."""
    return np.float32(np.int32(number) - np.int32(32))


@compiled(**NO_FASTMATH)
def _q6_k(packed, out, halves, count):
    force_wide_simd()
    for b in range(len(out) // 256):
        byte, to = 210 * b, 256 * b
        d = _read_float16(packed, byte + 208, halves)
        for k in range(4):  # the same high bits serve four groups of 16 numbers
            half, side = k >> 1, 16 * (k & 1)
            nibbles, bits, first = byte + 64 * half + side, byte + 128 + 32 * half + side, to + 128 * half + side
            factors = byte + 192 + 8 * half + (k & 1)
            s, t = d * np.float32(np.int8(packed[factors])), d * np.float32(np.int8(packed[factors + 2]))
            u, v = d * np.float32(np.int8(packed[factors + 4])), d * np.float32(np.int8(packed[factors + 6]))
            for j in range(count):
                high, one, other = packed[bits + j], packed[nibbles + j], packed[nibbles + 32 + j]
                out[first + j] = s * _less_32((one & LOW) | ((high & np.uint8(3)) << FOUR))
                out[first + 32 + j] = t * _less_32((other & LOW) | ((high & np.uint8(12)) << TWO))
                out[first + 64 + j] = u * _less_32((one >> FOUR) | (high & np.uint8(48)))
                out[first + 96 + j] = v * _less_32((other >> FOUR) | ((high & np.uint8(192)) >> TWO))


@compiled(**NO_FASTMATH)
def _mxfp4(packed, scale_bytes, out, numbers, powers, count):
    force_wide_simd()
    for b in range(len(out) // 32):
        scale = powers[scale_bytes[b]]
        for j in range(count):
            byte = packed[16 * b + j]
            out[32 * b + 2 * j] = scale * numbers[byte & LOW]
            out[32 * b + 2 * j + 1] = scale * numbers[byte >> FOUR]


_q4_0, _q4_1, _q5_0, _q5_1 = (_kernel_of_32(bias, fifth) for fifth in (0, 1) for bias in (0, 1))
_q4_k, _q5_k = _kernel_of_256(0), _kernel_of_256(1)
# For each kind with a kernel: bytes per block, and the start and end of the scales in a block.
SCALES = {
    "Q4_0": (18, 0, 2), "Q4_1": (20, 0, 4), "Q5_0": (22, 0, 2), "Q5_1": (24, 0, 4), "Q8_0": (34, 0, 2),
    "Q4_K": (144, 0, 4), "Q5_K": (176, 0, 4), "Q6_K": (210, 208, 210),
}  # fmt: skip
_KERNELS = (_q4_0, _q4_1, _q5_0, _q5_1, _q8_0, _q4_k, _q5_k, _q6_k)  # of the kinds above, in the same order
KERNELS: dict[str, Any] = dict(zip(SCALES, _KERNELS, strict=True))
NUMBERS = {kind: number for number, kind in enumerate(KERNELS)}


def multiply_row(kind: str, packed: np.ndarray, x: np.ndarray, products: np.ndarray) -> None:
    """Multiply x (C,) by each row of whole blocks (M, bytes), and write the M products into `products`.

    Generation reads all weights for each token, so a row is dequantized and used while it is in the CPU's first cache.
    kind: a key of `KERNELS`.
    """
    _multiply_row(NUMBERS[kind], packed, x, products, HALVES, HALF_BLOCK)


@compiled()
def _multiply_row(kind, packed, x, products, halves, count):
    """Dequantize each row (M, bytes) in turn, and write its product with x (C,) into `products`."""
    force_wide_simd()
    row = np.empty(len(x), np.float32)
    for m in range(len(products)):
        if kind == 0:
            _q4_0(packed[m], row, halves, count)
        elif kind == 1:
            _q4_1(packed[m], row, halves, count)
        elif kind == 2:
            _q5_0(packed[m], row, halves, count)
        elif kind == 3:
            _q5_1(packed[m], row, halves, count)
        elif kind == 4:
            _q8_0(packed[m], row, halves, count)
        elif kind == 5:
            _q4_k(packed[m], row, halves, count)
        elif kind == 6:
            _q5_k(packed[m], row, halves, count)
        else:
            _q6_k(packed[m], row, halves, count)
        total = np.float32(0)
        for c in range(len(x)):
            total += row[c] * x[c]
        products[m] = total
