"""Building blocks of the Numba passes: functions that LLVM compiles to vector instructions.

Measured losers, kept out: Python's `max()` doesn't vectorise (2.4 against 33 G/s), `math.exp` calls a scalar library.

The passes of an online softmax turn a tile of scores into exp(score - row maximum), in place. Shapes: R rows and C
columns of a tile, E value width. Row r uses columns [low + r, high + r) of a tile; rows that have seen no score yet
have the row maximum LOWEST. Source of the running row maximum and row sum: Milakov & Gimelshein 2018, "Online
normalizer calculation for softmax".
"""

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import intrinsic

# Not "fast": NaN and infinity have to come through as they do in torch, so `nnan` and `ninf` stay out.
FLAGS = {"reassoc", "contract", "nsz", "arcp"}

LOWEST = np.float32(np.finfo(np.float32).min)  # stands for "no score yet"; finite, so that -inf - LOWEST is -inf
LOG2_E = np.float32(1.4426950408889634)
LN_2 = 0.6931471805599453
LANES = 16  # float32 of the widest vector


def compiled(signature: str | list[str] | None = None, **options: Any) -> Callable[[Any], Any]:
    """Compile a pass without the GIL, cached on disk: at once if it has a signature, else when it is called.

    A type checker's wrapper, which the tests put around every function, is removed: Numba compiles what is inside.
    """
    settings = {"fastmath": FLAGS, "nogil": True, "error_model": "numpy", "boundscheck": False, **options}
    signatures = () if signature is None else (signature,)
    compiler: Any = njit

    def decorate(function: Any) -> Any:
        inner = inspect.unwrap(function)
        try:
            return compiler(*signatures, cache=True, **settings)(inner)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            return compiler(*signatures, **settings)(inner)  # without a cache: no folder can be written to

    return decorate


def _simd_float_bits(typing: Any, x: Any) -> Any:
    return types.int32(types.float32), lambda _context, builder, _signature, args: builder.bitcast(
        args[0], ir.IntType(32)
    )


def _simd_float_from_bits(typing: Any, x: Any) -> Any:
    return types.float32(types.int32), lambda _context, builder, _signature, args: builder.bitcast(
        args[0], ir.FloatType()
    )


def _simd_larger_float(typing: Any, x: Any, y: Any) -> Any:
    """Return the larger of two float32, NaN if one of them is."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        single = ir.FloatType()
        maximum = builder.module.declare_intrinsic("llvm.maximum", [single], ir.FunctionType(single, [single] * 2))
        return builder.call(maximum, args)

    return types.float32(types.float32, types.float32), generate


def _simd_bits_above_bound(typing: Any, row: Any, start: Any, bound: Any) -> Any:
    """Return 16 bits, each set if a number of row[start : start + 16] isn't below bound; NaN is below all."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        many, many_bits = ir.VectorType(ir.FloatType(), 16), ir.IntType(16)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        there = builder.load(builder.bitcast(builder.gep(data, [args[1]]), many.as_pointer()), align=4)
        undefined = ir.Constant(many, ir.Undefined)
        first = builder.insert_element(undefined, args[2], ir.IntType(32)(0))
        everywhere = builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), 16), [0] * 16))
        above = builder.bitcast(builder.fcmp_ordered(">=", there, everywhere), many_bits)
        return builder.zext(above, ir.IntType(64))

    return types.int64(row, types.int64, types.float32), generate


def _use_widest_simd(typing: Any) -> Any:
    """Let the compiler use the widest vectors in a function.

    LLVM keeps to 256 bits on Intel's CPUs, whose first models with 512 ran slower at them. llvmlite lists no attribute
    of this kind, so that its `add` would refuse it: a function's attributes are a set of strings.
    """

    def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        if isinstance(builder.function.attributes, set):  # as far as is known: else it stays at 256
            set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


def _simd_sums_of_sixteen(typing: Any, numbers: Any, start: Any, sums: Any, at: Any) -> Any:
    """Write to sums[at : at + 16] the sum of each 16 of numbers[start : start + 256].

    Sixteen vectors are added to one by halves, with two shuffles an addition; one by one LLVM takes four times as many.
    """
    here = range(0, 16, 4)  # the first of each four
    steps = (
        ([n + m for n in here for m in (0, 16, 1, 17)], [n + m for n in here for m in (2, 18, 3, 19)]),
        ([n + m for n in here for m in (0, 1, 16, 17)], [n + m for n in here for m in (2, 3, 18, 19)]),
        ([*range(8), *range(16, 24)], [*range(8, 16), *range(24, 32)]),
        ([n + m for n in range(0, 32, 8) for m in range(4)], [n + m for n in range(4, 32, 8) for m in range(4)]),
    )

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        many, index = ir.VectorType(ir.FloatType(), 16), ir.IntType(32)
        data, into = (context.make_array(signature.args[n])(context, builder, args[n]).data for n in (0, 2))

        def place(array: Any, first: Any) -> Any:
            return builder.bitcast(builder.gep(array, [first]), many.as_pointer())

        starts = [builder.add(args[1], ir.IntType(64)(16 * n)) for n in range(16)]
        vectors = [builder.load(place(data, first), align=4) for first in starts]
        for masks in steps:
            one, other = (ir.Constant(ir.VectorType(index, 16), mask) for mask in masks)
            vectors = [
                builder.fadd(builder.shuffle_vector(a, b, one), builder.shuffle_vector(a, b, other))
                for a, b in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        builder.store(vectors[0], place(into, args[3]), align=4)
        return context.get_dummy_value()

    return types.void(numbers, types.int64, sums, types.int64), generate


force_wide_simd: Any = intrinsic(_use_widest_simd)
add_up: Any = intrinsic(_simd_sums_of_sixteen)
bits: Any = intrinsic(_simd_float_bits)  # a float32's bits as an int32
number: Any = intrinsic(_simd_float_from_bits)  # and back
larger: Any = intrinsic(_simd_larger_float)
at_least: Any = intrinsic(_simd_bits_above_bound)
lowest_bit: Any = trailing_zeros  # the number of the lowest bit that is set


@compiled(inline="always")
def exp2(t):
    """Compute 2^t for t <= 0 in float32: relative error below 1e-7, exactly 1 at 0, exactly 0 below -126, NaN for NaN.

    A polynomial for the fraction (minimax, degree 6); the whole part is added to its exponent. Rounding happens once:
    fraction and exponent have to come from the same whole number. A function that calls it uses the widest vectors.
    """
    force_wide_simd()
    bounded = larger(t, np.float32(-127.0))
    whole = np.floor(bounded + np.float32(0.5))
    f = bounded - whole
    p = np.float32(1.535336188319500e-4)
    p = p * f + np.float32(1.339887440266574e-3)
    p = p * f + np.float32(9.618437357674640e-3)
    p = p * f + np.float32(5.550332471162809e-2)
    p = p * f + np.float32(2.402264791363012e-1)
    p = p * f + np.float32(6.931472028550421e-1)
    p = p * f + np.float32(1.0)
    power = number(bits(p) + (np.int32(whole) << np.int32(23)))
    return np.float32(0.0) if t < np.float32(-126.0) else power


@compiled("void(f4[:,::1], i8, i8, f4[::1], f4[::1], f4[:,::1], f4[:,::1], b1)")
def exponentiate_tile(scores, low, high, row_max, row_sum, weighted, pending, first):
    """Turn scores into exp(score - row_max), 0 in unused columns; update row_max, row_sum and weighted."""
    rows, cols = scores.shape
    width = weighted.shape[1]
    for r in range(rows):
        a = min(cols, max(0, low + r))
        b = max(a, min(cols, high + r))
        row = scores[r, a:b]  # a slice of its own: only indices from 0 on spare LLVM the test for negative ones
        best = LOWEST
        for j in range(len(row)):
            best = larger(best, row[j])
        old_max = row_max[r]
        new_max = larger(old_max, best)
        part = np.float32(0.0)
        for j in range(len(row)):
            weight = exp2((row[j] - new_max) * LOG2_E)
            row[j] = weight
            part += weight
        scores[r, :a] = np.float32(0.0)
        scores[r, b:] = np.float32(0.0)
        row_max[r] = new_max
        if first:
            row_sum[r] = part
        else:
            rescaling = exp2((old_max - new_max) * LOG2_E)
            row_sum[r] = row_sum[r] * rescaling + part
            for e in range(width):
                weighted[r, e] = (weighted[r, e] + pending[r, e]) * rescaling


@compiled("void(f4[:,::1], i8, i8, f4[::1], f4[::1])")
def update_tile_row_sums(scores, low, high, row_max, row_sum):
    """Update row_max and row_sum (R,) with a tile of scores (R, C), which stay as they are.

    Row r uses columns [low + r, high + r) of them.
    """
    rows, cols = scores.shape
    for r in range(rows):
        a = min(cols, max(0, low + r))
        b = max(a, min(cols, high + r))
        row = scores[r, a:b]
        best = LOWEST
        for j in range(len(row)):
            best = larger(best, row[j])
        old_max = row_max[r]
        new_max = larger(old_max, best)
        part = np.float32(0.0)
        for j in range(len(row)):
            part += exp2((row[j] - new_max) * LOG2_E)
        row_max[r] = new_max
        row_sum[r] = row_sum[r] * exp2((old_max - new_max) * LOG2_E) + part


@compiled("void(f4[::1], f4[::1], f4)")
def add_sink(row_max, row_sum, sink):
    """Add the sink's score (-inf for none) to row_max and row_sum: rows that see no key have nothing else."""
    for r in range(len(row_max)):
        if row_max[r] == LOWEST:
            row_max[r] = sink
            row_sum[r] = np.float32(0.0 if sink == np.float32(-np.inf) else 1.0)
        elif sink != np.float32(-np.inf):
            new_max = larger(row_max[r], sink)
            row_sum[r] = row_sum[r] * np.float32(math.exp(row_max[r] - new_max)) + np.float32(math.exp(sink - new_max))
            row_max[r] = new_max


@compiled("void(f4[:,::1], f4[:,::1], f4[::1], f4[::1], f4, f4[:,::1], f4[::1])")
def divide_tile_by_sums(weighted, pending, row_max, row_sum, sink, output, logsumexp):
    """Write output (R, E) and logsumexp (R,), and join the sink (-inf for none) to row_max and row_sum.

    weighted + pending (R, E): exponentials @ value over all tiles.
    """
    rows, width = weighted.shape
    for r in range(rows):
        before = row_max[r]
        if before == LOWEST:
            for e in range(width):
                output[r, e] = np.float32(0.0)
            logsumexp[r] = sink
            row_max[r] = sink
            row_sum[r] = np.float32(0.0 if sink == np.float32(-np.inf) else 1.0)
            continue
        factor = np.float32(1.0)
        if sink != np.float32(-np.inf):
            factor = np.float32(math.exp(before - larger(before, sink)))
            row_sum[r] = row_sum[r] * factor + np.float32(math.exp(sink - larger(before, sink)))
            row_max[r] = larger(before, sink)
        factor = factor / row_sum[r]
        for e in range(width):
            output[r, e] = (weighted[r, e] + pending[r, e]) * factor
        logsumexp[r] = np.float32(np.float64(row_max[r]) + math.log(np.float64(row_sum[r])))
