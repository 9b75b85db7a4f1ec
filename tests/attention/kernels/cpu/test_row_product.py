"""The product of a vector and a bfloat16 matrix converts each number exactly."""

import numpy as np
import torch

from regard.attention.kernels.cpu.row_product import multiply_bfloat16


def test_every_number_of_bfloat16_is_the_one_that_torch_raises() -> None:
    bits = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16)[:, None]
    made = np.zeros(len(bits), np.float32)
    multiply_bfloat16(bits.numpy(), np.ones(1, np.float32), made)
    assert np.array_equal(made, bits.view(torch.bfloat16)[:, 0].float().numpy(), equal_nan=True)
    assert np.isinf(made).sum() == 2
