"""A product on CPUs whose every number is rounded in one way, whatever part of the matrix is asked for.

Libraries add up a number's terms in an order that depends on the shapes of the matrices and the number of threads. Here
each is one fused multiply-add after another, from the first term to the last: a region has the bits of the whole.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import torch
from jaxtyping import Float
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from torch import Tensor

from regard.attention.kernels import threads
from regard.attention.kernels.cpu.vector import compiled

# A block is ROWS × 2 vectors of sums, held in registers: 16 of AVX-512's 32, or 12 of AVX2's 16. The bits are the same.
BYTES, ROWS = (64, 8) if llvm.get_host_cpu_features().get("avx512f") else (32, 6)
ALONE = 1 << 24  # multiply-adds below which handing out tasks costs more than it gains


def product(x: Float[Tensor, "R K"], y: Float[Tensor, "C K"]) -> Float[Tensor, "R C"]:
    """Compute x @ yᵀ in their dtype, float32 or float64, on the calling thread."""
    answer = x.new_empty(len(x), len(y))
    cols = 2 * BYTES // x.element_size()
    panels = x.new_empty(-(-len(y) // cols), x.shape[1], cols)
    x = torch.nn.functional.pad(x, (0, 0, 0, -len(x) % ROWS)) if len(x) % ROWS else x.contiguous()
    _multiply_panels(x.numpy(), y.contiguous().numpy(), panels.numpy(), answer.numpy())
    return answer


def grouped(a: Float[Tensor, "b h r x"], b: Float[Tensor, "b g x c"]) -> Float[Tensor, "b h r c"]:
    """Compute `scores.grouped_product`, rounded so. Large products are shared out among the worker threads."""
    batch, heads, rows, width = a.shape
    share = heads // max(1, b.shape[1])
    answer = a.new_empty(batch, heads, rows, b.shape[3])
    step = rows
    if answer.numel() * width >= ALONE:
        step = -(-rows // max(1, 4 * threads.worker_thread_count() // max(1, batch * heads)))
        step = -(-step // ROWS) * ROWS

    def part(n: int, h: int, start: int) -> None:
        answer[n, h, start : start + step] = product(a[n, h, start : start + step], b[n, h // share].mT)

    parts = [(n, h, start) for n in range(batch) for h in range(heads) for start in range(0, rows, max(1, step))]
    tasks: list[Callable[[], None]] = [lambda each=each: part(*each) for each in parts]  # type: ignore[misc]
    if len(tasks) > 1 and answer.numel() * width >= ALONE:
        threads.run_on_worker_threads(tasks)
    else:
        for task in tasks:
            task()
    return answer


def _multiply_panel_block(typing: Any, x: Any, panel: Any, into: Any, row: Any, at_row: Any, at_col: Any) -> Any:
    """Write rows [row, row + ROWS) of x (R, K) times a panel (K, C) to into[at_row:, at_col:]; C is two vectors."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        single = signature.args[0].dtype == types.float32
        lanes = BYTES // (4 if single else 8)
        vector = ir.VectorType(ir.FloatType() if single else ir.DoubleType(), lanes)
        word, nothing = ir.IntType(64), ir.Constant(vector, ir.Undefined)
        every = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
        name = f"llvm.fma.v{lanes}f{32 if single else 64}"
        fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
        x, panel, into = (make_array(signature.args[n])(context, builder, args[n]) for n in range(3))
        row, at_row, at_col = args[3:]
        width, stride = (cgutils.unpack_tuple(builder, array.shape)[1] for array in (x, into))

        def at(pointer: Any, *places: Any) -> Any:
            for place in places:
                pointer = builder.gep(pointer, [ir.Constant(word, place) if isinstance(place, int) else place])
            return pointer

        def vectors(pointer: Any) -> list[Any]:
            return [builder.bitcast(at(pointer, n * lanes), vector.as_pointer()) for n in range(2)]

        held = [[cgutils.alloca_once(builder, vector) for _ in range(2)] for _ in range(ROWS)]
        for line in held:
            for place in line:
                builder.store(ir.Constant(vector, None), place)
        with cgutils.for_range(builder, width) as loop:
            column = builder.mul(loop.index, ir.Constant(word, 2 * lanes))
            terms = [builder.load(place, align=4) for place in vectors(at(panel.data, column))]
            for r, line in enumerate(held):
                line_start = builder.mul(builder.add(row, ir.Constant(word, r)), width)
                number = builder.load(at(x.data, line_start, loop.index))
                factor = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
                factor = builder.shuffle_vector(factor, nothing, every)
                for place, term in zip(line, terms, strict=True):
                    builder.store(builder.call(fma, [factor, term, builder.load(place)]), place)
        for r, line in enumerate(held):
            line_start = builder.mul(builder.add(at_row, ir.Constant(word, r)), stride)
            for place, target in zip(line, vectors(at(into.data, line_start, at_col)), strict=True):
                builder.store(builder.load(place), target, align=4)
        return context.get_dummy_value()

    return types.void(x, panel, into, types.int64, types.int64, types.int64), generate


_block_of: Any = intrinsic(_multiply_panel_block)


@compiled(["void(f4[:,::1], f4[:,::1], f4[:,:,::1], f4[:,::1])", "void(f8[:,::1], f8[:,::1], f8[:,:,::1], f8[:,::1])"])
def _multiply_panels(x, y, panels, answer):
    """The product of x (R, K), its rows filled up to a multiple of ROWS, with y (C, K), into answer (≤ R, C).

    y goes into panels (P, K, columns of a block), each of which stays in the nearest cache while x passes by.
    """
    size, width = y.shape
    cols = panels.shape[2]
    sums = np.empty((ROWS, cols), x.dtype)
    for p in range(len(panels)):
        panel, start = panels[p], p * cols
        filled = min(cols, size - start)
        for j in range(filled):
            for k in range(width):
                panel[k, j] = y[start + j, k]
        for j in range(filled, cols):
            for k in range(width):
                panel[k, j] = 0.0
        for first in range(0, len(x), ROWS):
            if filled == cols and first + ROWS <= len(answer):
                _block_of(x, panel, answer, first, first, start)
                continue
            _block_of(x, panel, sums, first, 0, 0)
            for r in range(min(ROWS, len(answer) - first)):
                for j in range(filled):
                    answer[first + r, start + j] = sums[r, j]
