"""Row maxima and row sums of a few queries, their keys shared out among the workers."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention.kernels.cpu import row_sums, tiles
from regard.attention.softmax import row_max_sum
from tests.attention.cases import Case, cases

SINGLE = (torch.float32, torch.bfloat16, torch.float16)


@settings(max_examples=60, deadline=None)
@given(cases(SINGLE), st.integers(1, 20), st.data())
def test_row_sums_of_a_few_rows(case: Case, cols: int, data: st.DataObject) -> None:
    seen, kept = regard.attend(case.query, case.key, case.value, **case.options).weights, tiles.COLS
    start = data.draw(st.integers(0, case.query.shape[2] - 1))
    stop = data.draw(st.integers(start + 1, case.query.shape[2]))
    batch, head = case.query.shape[0] - 1, case.query.shape[1] - 1
    try:
        tiles.COLS = cols
        top, total = row_sums.threaded_row_max_sum(seen.query, seen.key, seen.rule, batch, head, start, stop)
    finally:
        tiles.COLS = kept
    one = slice(batch, batch + 1), slice(head, head + 1), slice(start, stop)
    right, whole = row_max_sum(seen.query, seen.key, seen.rule, *one)
    torch.testing.assert_close(top, right[0, 0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(top + total.log(), right[0, 0] + whole[0, 0].log(), rtol=1e-5, atol=1e-5)
