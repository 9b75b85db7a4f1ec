"""What the passes are made of: exponentials, products, worker threads."""

import threading
import time

import numpy as np
import pytest
import torch
from numba import njit

from regard.attention import masks
from regard.attention.kernels import matmul
from regard.attention.kernels.cpu import forward, statistics, threads, vector
from regard.attention.kernels.cpu.tiles import LEAST, spans
from regard.attention.map_statistics import Wanted
from regard.attention.scores import ScoreRule
from tests.attention.cases import random


@pytest.fixture(scope="module")
def exp2():
    exp2 = vector.exp2

    @njit
    def each(numbers, into):
        for n in range(len(numbers)):
            into[n] = exp2(numbers[n])

    def call(numbers: np.ndarray) -> np.ndarray:
        into = np.empty_like(numbers)
        each(numbers, into)
        return into

    return call


def test_exp2_rounds_like_a_library(exp2) -> None:
    numbers = np.linspace(-126, 0, 1_000_003, dtype=np.float32)
    error = np.abs(exp2(numbers).astype(np.float64) / np.exp2(numbers.astype(np.float64)) - 1)
    assert error.max() < 1.2e-7


def test_exp2_at_its_ends(exp2) -> None:
    numbers = np.array([0.0, -0.0, -1.0, -126.0, -127.0, -1e30, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(exp2(numbers), np.array([1, 1, 0.5, 2.0**-126, 0, 0, 0, np.nan], np.float32))


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (512, 1024, 64), (17, 1, 33)])
def test_both_products(shape: tuple[int, int, int]) -> None:
    rows, cols, width = shape
    x, y = random(0, rows, width, dtype=torch.float32), random(1, cols, width, dtype=torch.float32)
    right = (x.double() @ y.double().mT).float()
    torch.testing.assert_close(matmul.blas(x, y), right, rtol=1e-5, atol=1e-5)
    if matmul.onednn_works():
        torch.testing.assert_close(matmul.onednn(x, y), right, rtol=1e-5, atol=1e-5)
        backwards = matmul.onednn(x, y.mT.contiguous().mT)  # as value tiles come
        torch.testing.assert_close(backwards, right, rtol=1e-5, atol=1e-5)


def test_without_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert matmul._measure() == 0
    monkeypatch.setattr(matmul, "speed", lambda: 0.0)
    assert matmul.product() is matmul.linear() is matmul.blas
    x = random(0, 1, 2, 300, 8, dtype=torch.float32)
    torch.testing.assert_close(
        forward.attend(x, x, x, ScoreRule(1.0))[0], torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=1.0)
    )


def test_the_usual_product_is_given_up_for_one_that_is_clearly_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    for speed, tiles, maps in ((2.0, "onednn", "onednn"), (1.1, "onednn", "blas"), (0.9, "onednn", "blas"),
                               (0.5, "blas", "blas")):  # fmt: skip
        monkeypatch.setattr(matmul, "speed", lambda speed=speed: speed)
        assert (matmul.product().__name__, matmul.linear().__name__) == (tiles, maps)


def test_results_come_in_order_and_on_workers() -> None:
    names = threads.run([lambda n=n: (n, threading.current_thread().name, torch.get_num_threads()) for n in range(20)])
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
        threads.run([lambda n=n: task(n) for n in range(5)])
    assert sorted(ended) == [1, 2, 3, 4]


def test_tasks_may_run_tasks() -> None:
    inner = lambda: sum(threads.run([lambda n=n: n for n in range(3)]))  # noqa: E731
    assert threads.run([inner] * 10) == [3] * 10


@pytest.mark.parametrize("count", [1, 2, 5])
def test_torch_s_thread_count_stays(count: int) -> None:
    before = torch.get_num_threads()
    seen: list[int] = []
    try:
        torch.set_num_threads(count)
        threads._pools.pop(count, None)
        x = random(0, 1, 4, 600, 8, dtype=torch.float32)
        statistics.compute(x, x, ScoreRule(1.0), Wanted(entropy=True), forward.forward(x, x, x, ScoreRule(1.0))[2:])
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
    rule, wanted = ScoreRule(0.4, mask=masks.causal()), Wanted(4, True, True, True, (16, 16))
    answers: dict[int, tuple] = {}

    def work(n: int) -> None:
        query, key, value = inputs[n]
        done = forward.forward(query, key, value, rule)
        answers[n] = (*done, *vars(statistics.compute(query, key, rule, wanted, done[2:])).values())

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


@pytest.mark.parametrize(("lines", "length", "workers"), [(12, 9000, 2), (1, 9000, 2), (3, 100, 8), (7, 5000, 64)])
def test_tasks_cover_all_queries_once(lines: int, length: int, workers: int) -> None:
    found = spans(lines, length, workers)
    assert [row for start, stop in found for row in range(start, stop)] == list(range(length))
    assert len(found) * lines >= min(workers, lines * (length // LEAST))
