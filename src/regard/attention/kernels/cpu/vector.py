"""Building blocks of the Numba passes: functions that LLVM compiles to vector instructions.

Avoid Python's `max()`, which doesn't vectorize (2.4 instead of 33 G/s), and `math.exp`, which calls a scalar library.

The passes of an online softmax convert a tile of scores to exp(score - row maximum), in place. Shapes: R rows and C
columns of a tile, E value width. Row r uses columns [low + r, high + r) of a tile. Before its first score, a row has
the row maximum LOWEST. Source of the running row maximum and row sum: Milakov & Gimelshein 2018, "Online
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

# Not "fast", which includes `nnan` and `ninf`: NaN and infinity must propagate as in torch.
FLAGS = {"reassoc", "contract", "nsz", "arcp"}

LOWEST = np.float32(np.finfo(np.float32).min)  # means "no score yet"; finite, so that -inf - LOWEST is -inf
LOG2_E = np.float32(1.4426950408889634)
LN_2 = 0.6931471805599453
LANES = 16  # float32 values in the widest vector


def compiled(signature: str | list[str] | None = None, **options: Any) -> Callable[[Any], Any]:
    """Compile a pass that releases the GIL, with a disk cache: at once if it has a signature, else on the first call.

    The wrapper of a run-time type checker, which the tests add to every function, is removed before compiling.
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
            return compiler(*signatures, **settings)(inner)  # no writable folder for the cache

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
    """Return the larger of two float32 values, or NaN if either is NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        single = ir.FloatType()
        maximum = builder.module.declare_intrinsic("llvm.maximum", [single], ir.FunctionType(single, [single] * 2))
        return builder.call(maximum, args)

    return types.float32(types.float32, types.float32), generate


def _simd_bits_above_bound(typing: Any, row: Any, start: Any, bound: Any) -> Any:
    """Return 16 bits, each set if the value in row[start : start + 16] is at least bound. NaN counts as below."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector_type, many_bits = ir.VectorType(ir.FloatType(), 16), ir.IntType(16)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        values = builder.load(builder.bitcast(builder.gep(data, [args[1]]), vector_type.as_pointer()), align=4)
        undefined = ir.Constant(vector_type, ir.Undefined)
        first = builder.insert_element(undefined, args[2], ir.IntType(32)(0))
        broadcast = builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), 16), [0] * 16))
        above = builder.bitcast(builder.fcmp_ordered(">=", values, broadcast), many_bits)
        return builder.zext(above, ir.IntType(64))

    return types.int64(row, types.int64, types.float32), generate


def _use_widest_simd(typing: Any) -> Any:
    """Let the compiler use the widest vectors in a function.

    LLVM limits itself to 256 bits on Intel CPUs, because early models with 512 ran slower. llvmlite's `add` rejects
    this attribute because it isn't in its list, so it is added to the underlying set of strings.
    """

    def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        if isinstance(builder.function.attributes, set):  # otherwise vectors have 256 bits
            set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


def _simd_sums_of_sixteen(typing: Any, numbers: Any, start: Any, sums: Any, at: Any) -> Any:
    """Write the sums of every 16 values of numbers[start : start + 256] to sums[at : at + 16].

    Sixteen vectors are added pairwise with two shuffles per addition. LLVM's own code has four times as many shuffles.
    """
    firsts = range(0, 16, 4)  # the first of every four
    steps = (
        ([n + m for n in firsts for m in (0, 16, 1, 17)], [n + m for n in firsts for m in (2, 18, 3, 19)]),
        ([n + m for n in firsts for m in (0, 1, 16, 17)], [n + m for n in firsts for m in (2, 3, 18, 19)]),
        ([*range(8), *range(16, 24)], [*range(8, 16), *range(24, 32)]),
        ([n + m for n in range(0, 32, 8) for m in range(4)], [n + m for n in range(4, 32, 8) for m in range(4)]),
    )

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector_type, index = ir.VectorType(ir.FloatType(), 16), ir.IntType(32)
        data, target = (context.make_array(signature.args[n])(context, builder, args[n]).data for n in (0, 2))

        def pointer(array: Any, first: Any) -> Any:
            return builder.bitcast(builder.gep(array, [first]), vector_type.as_pointer())

        starts = [builder.add(args[1], ir.IntType(64)(16 * n)) for n in range(16)]
        vectors = [builder.load(pointer(data, first), align=4) for first in starts]
        for masks in steps:
            one, other = (ir.Constant(ir.VectorType(index, 16), mask) for mask in masks)
            vectors = [
                builder.fadd(builder.shuffle_vector(a, b, one), builder.shuffle_vector(a, b, other))
                for a, b in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        builder.store(vectors[0], pointer(target, args[3]), align=4)
        return context.get_dummy_value()

    return types.void(numbers, types.int64, sums, types.int64), generate


force_wide_simd: Any = intrinsic(_use_widest_simd)
add_up: Any = intrinsic(_simd_sums_of_sixteen)
bits: Any = intrinsic(_simd_float_bits)  # a float32's bits as an int32
number: Any = intrinsic(_simd_float_from_bits)  # and back
larger: Any = intrinsic(_simd_larger_float)
at_least: Any = intrinsic(_simd_bits_above_bound)
lowest_bit: Any = trailing_zeros  # index of the lowest set bit


@compiled(inline="always")
def exp2(t):
    """Compute 2^t for t <= 0 in float32: relative error below 1e-7, exactly 1 at 0, exactly 0 below -126, NaN for NaN.

    A minimax polynomial of degree 6 computes the fraction's power; the integer part is added to its exponent. Both use
    the same rounded integer. Functions that call this use the widest vectors.
    """
    force_wide_simd()
    bounded = larger(t, np.float32(-127.0))
    rounded = np.floor(bounded + np.float32(0.5))
    f = bounded - rounded
    p = np.float32(1.535336188319500e-4)
    p = p * f + np.float32(1.339887440266574e-3)
    p = p * f + np.float32(9.618437357674640e-3)
    p = p * f + np.float32(5.550332471162809e-2)
    p = p * f + np.float32(2.402264791363012e-1)
    p = p * f + np.float32(6.931472028550421e-1)
    p = p * f + np.float32(1.0)
    power = number(bits(p) + (np.int32(rounded) << np.int32(23)))
    return np.float32(0.0) if t < np.float32(-126.0) else power


@compiled("void(f4[:,::1], i8, i8, f4[::1], f4[::1], f4[:,::1], f4[:,::1], b1)")
def exponentiate_tile(scores, low, high, row_max, row_sum, weighted, pending, first):
    """Convert scores to exp(score - row_max), 0 in unused columns, and update row_max, row_sum and weighted."""
    rows, cols = scores.shape
    width = weighted.shape[1]
    for r in range(rows):
        a = min(cols, max(0, low + r))
        b = max(a, min(cols, high + r))
        row = scores[r, a:b]  # with a slice, LLVM needn't test for negative indices
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
    """Update row_max and row_sum (R,) with a tile of scores (R, C), which aren't changed.

    Row r uses columns [low + r, high + r).
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
    """Add the sink's score (-inf without a sink) to row_max and row_sum. Fully masked rows have only the sink."""
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
    """Write output (R, E) and logsumexp (R,), and add the sink (-inf without a sink) to row_max and row_sum.

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


@compiled()
def multiply_bfloat16(packed, x, products):
    """Multiply x (C,) by each bfloat16 row (M, C), given as uint16 bits, and write the M products.

    Generation multiplies each new token's vector by all weights that are kept in bfloat16.
    """
    force_wide_simd()
    for m in range(len(products)):
        total = np.float32(0)
        for c in range(len(x)):  # bfloat16 is the upper half of float32
            total += number(np.int32(np.uint32(packed[m, c]) << np.uint32(16))) * x[c]
        products[m] = total
