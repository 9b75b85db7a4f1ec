"""How the queries of heads are shared out into tasks."""

import pytest

from regard.attention.kernels.cpu.tiles import LEAST, ROWS, block_rows, spans


@pytest.mark.parametrize(("lines", "length", "workers"), [(12, 9000, 2), (1, 9000, 2), (3, 100, 8), (7, 5000, 64)])
def test_tasks_cover_all_queries_once(lines: int, length: int, workers: int) -> None:
    found = spans(lines, length, workers)
    assert [row for start, stop in found for row in range(start, stop)] == list(range(length))
    assert len(found) * lines >= min(workers, lines * (length // LEAST))
    assert all(start % block_rows(lines, length) == 0 for start, _ in found)  # the same blocks for any workers
    assert LEAST <= block_rows(lines, length) <= ROWS
