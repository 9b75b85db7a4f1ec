"""How the queries of heads are shared out into tasks."""

import pytest

from regard.attention.kernels.cpu.tiles import LEAST, ROWS, rows_per_tile_block, split_into_thread_tasks


@pytest.mark.parametrize(("lines", "length", "workers"), [(12, 9000, 2), (1, 9000, 2), (3, 100, 8), (7, 5000, 64)])
def test_tasks_cover_all_queries_once(lines: int, length: int, workers: int) -> None:
    found = split_into_thread_tasks(lines, length, workers)
    assert [row for start, stop in found for row in range(start, stop)] == list(range(length))
    assert len(found) * lines >= min(workers, lines * (length // LEAST))
    assert all(start % rows_per_tile_block(lines, length) == 0 for start, _ in found)  # the same blocks for any workers
    assert LEAST <= rows_per_tile_block(lines, length) <= ROWS
