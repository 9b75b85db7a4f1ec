"""Raise quantised numbers to float32, a run of whole blocks at a time, bit for bit as the package gguf does; and
multiply a row by them, or by bfloat16's, where each is dequantized.

A quantised row is a row of blocks of 32 or 256 numbers. A block has a few bits for each number, and one or two scales
in float16; where it has 256 numbers, each 16 or 32 of them have a factor of a few bits besides. Kinds that are common
in files are dequantized by the passes below, others by gguf's NumPy code, which takes five times as long.

    kind          block: bytes                                            a number
    ------------  ------------------------------------------------------  ------------------------------------------
    Q4_0, Q5_0    32: scale d, (fifth bits,) 16 of nibbles                d · (q - 8), d · (q - 16)
    Q4_1, Q5_1    32: scale d, least m, (fifth bits,) 16 of nibbles       d · q + m
    Q8_0          32: scale d, 32 of numbers                              d · q
    Q4_K, Q5_K    256: d, m, 12 of factors s and t, (32 of fifth bits,)   (d · s) · q - (m · t), for each 32
                  128 of nibbles
    MXFP4 aside   32: 16 of nibbles, its scale e elsewhere                FP4[q] · 2^(e - 127), the lower one first
    Q6_K          256: 128 of nibbles, 64 of high bits, 16 of factors s   (d · s) · (q - 32), for each 16
                  and d
"""

from typing import Any

import numpy as np

from regard.attention.kernels.cpu.vector import compiled, force_wide_simd, number

BFLOAT16 = "BF16"  # as gguf names it
LOW, FOUR, TWO = np.uint8(15), np.uint8(4), np.uint8(2)
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)  # every float16 number, by its bits
# MXFP4 as safetensors of gpt-oss have it; in GGUF files each block has its own scale, and another order of nibbles.
FP4 = np.array([sign * size for sign in (1, -1) for size in (0, 0.5, 1, 1.5, 2, 3, 4, 6)], np.float32)
with np.errstate(over="ignore"):
    POWERS = np.ldexp(np.float32(1), np.arange(256) - 127).astype(np.float32)  # the last of them is infinite
# Numbers in half a block of 32, given to the passes when they run: LLVM unrolls a count that it knows into single
MANY = 16  # numbers, and makes vectors where it does not, which takes a third of the time
NO_FASTMATH: dict[str, Any] = {"fastmath": False}  # no product and sum may become one operation: gguf's NumPy has two


def dequantize_blocks(kind: str, packed: np.ndarray, into: np.ndarray, aside: np.ndarray | None = None) -> None:
    """Write the numbers of whole blocks of a kind, a run of bytes, into a run of float32. aside: MXFP4's scales."""
    if aside is not None:
        _mxfp4(packed, aside, into, FP4, POWERS, MANY)
        return
    if kind in PASSES:
        PASSES[kind](packed, into, HALVES, MANY)
        return
    import gguf

    package: Any = gguf
    into[:] = package.dequantize(packed[None], package.GGMLQuantizationType[kind])[0]


def scales(kind: str, packed: np.ndarray, aside: np.ndarray | None = None) -> np.ndarray | None:
    """Read the scales of whole blocks, (blocks, 1 or 2): all else in them is finite. None for other kinds."""
    if aside is not None:
        return POWERS[aside][:, None]
    if kind not in SCALES:
        return None
    size, first, last = SCALES[kind]
    return np.ascontiguousarray(packed.reshape(-1, size)[:, first:last]).view(np.float16)


@compiled(inline="always", **NO_FASTMATH)
def _half(packed, at, halves):
    return halves[np.uint32(packed[at]) | (np.uint32(packed[at + 1]) << np.uint32(8))]


@compiled(inline="always", **NO_FASTMATH)
def _four_bytes(packed, at):
    """Four bytes as a whole number, the lowest first."""
    low = np.uint32(packed[at]) | (np.uint32(packed[at + 1]) << np.uint32(8))
    return low | (np.uint32(packed[at + 2]) << np.uint32(16)) | (np.uint32(packed[at + 3]) << np.uint32(24))


def _pass_of_32(has_least, fifth):
    """Compile the pass of Q4_0, Q4_1, Q5_0 or Q5_1, in which the two are constants."""
    size, start = 18 + 2 * has_least + 4 * fifth, 2 + 2 * has_least
    zero = np.int32(0 if has_least else 16 if fifth else 8)

    @compiled(**NO_FASTMATH)
    def run(packed, into, halves, many):
        force_wide_simd()
        for b in range(len(into) // 32):
            at, to = size * b, 32 * b
            d = _half(packed, at, halves)
            least = -_half(packed, at + 2, halves) if has_least else np.float32(0)
            bits = _four_bytes(packed, at + start) if fifth else np.uint32(0)
            first = at + start + 4 * fifth
            for j in range(many):
                high = ((bits >> np.uint32(j)) & np.uint32(1)) << np.uint32(4)
                into[to + j] = d * np.float32(np.int32(np.uint32(packed[first + j] & LOW) | high) - zero) - least
            for j in range(many):
                high = ((bits >> np.uint32(j + 16)) & np.uint32(1)) << np.uint32(4)
                into[to + 16 + j] = d * np.float32(np.int32(np.uint32(packed[first + j] >> FOUR) | high) - zero) - least

    return run


@compiled(**NO_FASTMATH)
def _q8_0(packed, into, halves, many):
    force_wide_simd()
    for b in range(len(into) // 32):
        at, to = 34 * b, 32 * b
        d = _half(packed, at, halves)
        for j in range(2 * many):
            into[to + j] = d * np.float32(np.int8(packed[at + 2 + j]))


@compiled(inline="always", **NO_FASTMATH)
def _factors(packed, at, k):
    """The factors of the k-th of a block's eight groups, of its scale and of its least: six bits each, in 12 bytes."""
    if k < 4:
        return packed[at + k] & np.uint8(63), packed[at + 4 + k] & np.uint8(63)
    both = packed[at + 4 + k]
    high, other = packed[at + k - 4] >> np.uint8(6), packed[at + k] >> np.uint8(6)
    return (both & LOW) | (high << FOUR), (both >> FOUR) | (other << FOUR)


def _pass_of_256(fifth):
    """Compile the pass of Q4_K or Q5_K."""
    size, start = 144 + 32 * fifth, 16 + 32 * fifth

    @compiled(**NO_FASTMATH)
    def run(packed, into, halves, many):
        force_wide_simd()
        for b in range(len(into) // 256):
            at, to = size * b, 256 * b
            d, m = _half(packed, at, halves), _half(packed, at + 2, halves)
            for k in range(8):
                s, t = _factors(packed, at + 4, k)
                scale, least = d * np.float32(s), m * np.float32(t)
                nibbles, first = at + start + 32 * (k >> 1), to + 32 * k
                shift, bit = np.uint8(4 * (k & 1)), np.uint8(k)
                for j in range(2 * many):
                    high = ((packed[at + 16 + j] >> bit) & np.uint8(1)) << FOUR if fifth else np.uint8(0)
                    into[first + j] = scale * np.float32(((packed[nibbles + j] >> shift) & LOW) | high) - least

    return run


@compiled(inline="always", **NO_FASTMATH)
def _signed(number):
    """A number of six bits, 32 less."""
    return np.float32(np.int32(number) - np.int32(32))


@compiled(**NO_FASTMATH)
def _q6_k(packed, into, halves, many):
    force_wide_simd()
    for b in range(len(into) // 256):
        at, to = 210 * b, 256 * b
        d = _half(packed, at + 208, halves)
        for k in range(4):  # the two sides of each half of a block: four groups of 16 from the same bits
            half, side = k >> 1, 16 * (k & 1)
            nibbles, bits, first = at + 64 * half + side, at + 128 + 32 * half + side, to + 128 * half + side
            factors = at + 192 + 8 * half + (k & 1)
            s, t = d * np.float32(np.int8(packed[factors])), d * np.float32(np.int8(packed[factors + 2]))
            u, v = d * np.float32(np.int8(packed[factors + 4])), d * np.float32(np.int8(packed[factors + 6]))
            for j in range(many):
                high, one, other = packed[bits + j], packed[nibbles + j], packed[nibbles + 32 + j]
                into[first + j] = s * _signed((one & LOW) | ((high & np.uint8(3)) << FOUR))
                into[first + 32 + j] = t * _signed((other & LOW) | ((high & np.uint8(12)) << TWO))
                into[first + 64 + j] = u * _signed((one >> FOUR) | (high & np.uint8(48)))
                into[first + 96 + j] = v * _signed((other >> FOUR) | ((high & np.uint8(192)) >> TWO))


@compiled(**NO_FASTMATH)
def _mxfp4(packed, aside, into, numbers, powers, many):
    force_wide_simd()
    for b in range(len(into) // 32):
        scale = powers[aside[b]]
        for j in range(many):
            byte = packed[16 * b + j]
            into[32 * b + 2 * j] = scale * numbers[byte & LOW]
            into[32 * b + 2 * j + 1] = scale * numbers[byte >> FOUR]


_q4_0, _q4_1, _q5_0, _q5_1 = (_pass_of_32(least, fifth) for fifth in (0, 1) for least in (0, 1))
_q4_k, _q5_k = _pass_of_256(0), _pass_of_256(1)
# Of each kind with a pass, where a block's scales lie: its bytes, their first and the one after their last.
SCALES = {
    "Q4_0": (18, 0, 2), "Q4_1": (20, 0, 4), "Q5_0": (22, 0, 2), "Q5_1": (24, 0, 4), "Q8_0": (34, 0, 2),
    "Q4_K": (144, 0, 4), "Q5_K": (176, 0, 4), "Q6_K": (210, 208, 210),
}  # fmt: skip
RUNS = (_q4_0, _q4_1, _q5_0, _q5_1, _q8_0, _q4_k, _q5_k, _q6_k)  # of these kinds, in this order
PASSES: dict[str, Any] = dict(zip(SCALES, RUNS, strict=True))
NUMBERS = {kind: number for number, kind in enumerate(PASSES)}


def multiply_row(kind: str, packed: np.ndarray, x: np.ndarray, made: np.ndarray) -> None:
    """Write the products of x (C,) and each row of whole blocks (M, bytes) into made (M,).

    A row is dequantized in the nearest cache and used there: a model that writes reads all its weights for each token.
    kind: one of `PASSES`, or BF16, whose rows are numbers' bits, uint16 (M, C).
    """
    if kind == BFLOAT16:
        _multiply_bfloat16_row(packed, x, made)
        return
    _multiply_row(NUMBERS[kind], packed, x, made, HALVES, MANY)


@compiled()
def _multiply_bfloat16_row(packed, x, made):
    force_wide_simd()
    for m in range(len(made)):
        total = np.float32(0)
        for c in range(len(x)):  # its bits are the upper half of float32's
            total += number(np.int32(np.uint32(packed[m, c]) << np.uint32(16))) * x[c]
        made[m] = total


@compiled()
def _multiply_row(kind, packed, x, made, halves, many):
    force_wide_simd()
    row = np.empty(len(x), np.float32)
    for m in range(len(made)):
        if kind == 0:
            _q4_0(packed[m], row, halves, many)
        elif kind == 1:
            _q4_1(packed[m], row, halves, many)
        elif kind == 2:
            _q5_0(packed[m], row, halves, many)
        elif kind == 3:
            _q5_1(packed[m], row, halves, many)
        elif kind == 4:
            _q8_0(packed[m], row, halves, many)
        elif kind == 5:
            _q4_k(packed[m], row, halves, many)
        elif kind == 6:
            _q5_k(packed[m], row, halves, many)
        else:
            _q6_k(packed[m], row, halves, many)
        total = np.float32(0)
        for c in range(len(x)):
            total += row[c] * x[c]
        made[m] = total
