"""Worker threads: order, errors, tasks within tasks, and a torch whose thread count stays."""

import threading
import time

import pytest
import torch

from regard.attention import masks
from regard.attention.kernels import threads
from regard.attention.kernels.cpu import forward, statistics
from regard.attention.map_statistics import Statistics
from regard.attention.scores import ScoreRule
from tests.attention.cases import random


def test_results_come_in_order_and_on_workers() -> None:
    names = threads.run_on_worker_threads(
        [lambda n=n: (n, threading.current_thread().name, torch.get_num_threads()) for n in range(20)]
    )
    assert [n for n, _, _ in names] == list(range(20))
    assert all(name.startswith("regard") for _, name, _ in names)
    assert {count for _, _, count in names} == {1}


def test_a_task_s_error_is_raised_when_all_have_ended() -> None:
    ended: list[int] = []

    def task(n: int) -> None:
        if n == 0:
            raise KeyError("first")
        time.sleep(0.02)
        ended.append(n)

    with pytest.raises(KeyError, match="first"):
        threads.run_on_worker_threads([lambda n=n: task(n) for n in range(5)])
    assert sorted(ended) == [1, 2, 3, 4]


def test_tasks_may_run_tasks() -> None:
    inner = lambda: sum(threads.run_on_worker_threads([lambda n=n: n for n in range(3)]))  # noqa: E731
    assert threads.run_on_worker_threads([inner] * 10) == [3] * 10


@pytest.mark.parametrize("count", [1, 2, 5])
def test_torch_s_thread_count_stays(count: int) -> None:
    before = torch.get_num_threads()
    seen: list[int] = []
    try:
        torch.set_num_threads(count)
        threads._pools.pop(count, None)
        x = random(0, 1, 4, 600, 8, dtype=torch.float32)
        statistics.compute(
            x, x, ScoreRule(1.0), Statistics.only(entropy=True), 0, forward.forward(x, x, x, ScoreRule(1.0)).row_max_sum
        )
        other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        other.start()
        other.join()
        assert torch.get_num_threads() == count
        assert seen == [count]
    finally:
        torch.set_num_threads(before)


def test_several_python_threads_at_once() -> None:
    threads._pools.clear()  # so that they also start the pool at once
    inputs = [tuple(random(3 * n + m, 1, 3, 520, 8, dtype=torch.float32) for m in range(3)) for n in range(6)]
    rule, wanted = ScoreRule(0.4, mask=masks.causal()), Statistics(4, (16, 16))
    answers: dict[int, tuple] = {}

    def work(n: int) -> None:
        query, key, value = inputs[n]
        done = forward.forward(query, key, value, rule)
        answers[n] = (
            *done[:2],
            *done.row_max_sum,
            *vars(statistics.compute(query, key, rule, wanted, 0, done.row_max_sum)).values(),
        )

    workers = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    together = dict(answers)
    for n in range(6):
        work(n)
        for a, b in zip(together[n], answers[n], strict=True):
            assert (a is None and b is None) or torch.equal(a, b)
