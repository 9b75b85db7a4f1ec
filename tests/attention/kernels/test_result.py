"""What kernels return: the row maximum and row sum, where they are kept, are those of the logsumexp."""

import torch

from regard.attention.kernels.cpu import forward
from regard.attention.scores import ScoreRule
from tests.attention.cases import random


def test_they_make_up_the_logsumexp() -> None:
    query, key, value = random(3, 1, 2, 67, 8), random(4, 1, 2, 131, 8), random(5, 1, 2, 131, 11)
    result = forward.forward(query, key, value, ScoreRule(0.25))
    row_max, row_sum = result.row_max_sum
    scores = 0.25 * query.double() @ key.double().mT
    torch.testing.assert_close(result.logsumexp, row_max + row_sum.log(), atol=1e-5, rtol=0)
    torch.testing.assert_close(result.logsumexp.double(), scores.logsumexp(-1), atol=1e-5, rtol=0)
