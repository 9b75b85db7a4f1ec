"""Multiply rows of bfloat16 numbers, which are the upper halves of float32's, by a row in float32."""

import numpy as np

from regard.attention.kernels.cpu.vector import compiled, number, wide


def multiply_bfloat16_row(packed: np.ndarray, x: np.ndarray, made: np.ndarray) -> None:
    """Write the products of x (C,) and each row of bfloat16 bits, uint16 (M, C), into made (M,)."""
    _multiply_bfloat16_row(packed, x, made)


@compiled()
def _multiply_bfloat16_row(packed, x, made):
    wide()
    for m in range(len(made)):
        total = np.float32(0)
        for c in range(len(x)):
            total += number(np.int32(np.uint32(packed[m, c]) << np.uint32(16))) * x[c]
        made[m] = total
