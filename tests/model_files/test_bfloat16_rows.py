"""The bits of bfloat16 are those that torch raises, subnormal numbers and infinities included."""

import numpy as np
import torch

from regard.model_files.bfloat16_rows import multiply_bfloat16_row


def test_every_number_there_is() -> None:
    bits = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16)[:, None]
    made = np.zeros(len(bits), np.float32)
    multiply_bfloat16_row(bits.numpy(), np.ones(1, np.float32), made)
    expected = bits.view(torch.bfloat16)[:, 0].float().numpy()
    assert np.array_equal(made, expected, equal_nan=True)
    assert np.isinf(made).sum() == 2
