"""Multiply a vector by the rows of a bfloat16 matrix, as generation does for each token."""

import numpy as np

from regard.attention.kernels.cpu.vector import compiled, force_wide_simd, number


@compiled()
def multiply_bfloat16(packed, x, products):
    """Multiply x (C,) by each bfloat16 row (M, C), given as uint16 bits, and write the M products."""
    force_wide_simd()
    for m in range(len(products)):
        total = np.float32(0)
        for c in range(len(x)):  # bfloat16 is the upper half of float32
            total += number(np.int32(np.uint32(packed[m, c]) << np.uint32(16))) * x[c]
        products[m] = total
