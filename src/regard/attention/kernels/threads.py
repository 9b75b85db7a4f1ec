"""Run torch operations on single-threaded worker threads without changing torch's thread count."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

import torch

T = TypeVar("T")
MIN_THREADED = 1 << 17  # numbers; for fewer, a single thread is faster

_pools: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()
_state = threading.local()  # .working is set in worker threads


def run_on_worker_threads(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks on as many workers as the caller's torch has threads. Returns their results in order.

    Workers use inference mode if the caller does (they don't inherit it), and never autograd or autocast. Raises what
    a task raised, after all tasks have ended.
    """
    inference = torch.is_inference_mode_enabled()
    if getattr(_state, "working", False):  # a nested call: waiting for the pool it occupies could deadlock
        return [_run_without_gradient(task, inference) for task in tasks]
    with _lock:  # pools are started on first use
        number = torch.get_num_threads()
        if number not in _pools:
            _pools[number] = start_worker_threads(number)
        pool = _pools[number]
    futures: list[Future[T]] = [pool.submit(_run_without_gradient, task, inference) for task in tasks]
    wait(futures)
    return [future.result() for future in futures]


def run_on_ranges(count: int, numbers: int, run_range: Callable[[int, int], None]) -> None:
    """Run a function on ranges of `count` items, on worker threads if the items have many numbers.

    run_range: called with the first item of a range, and the item after its last.
    """
    workers = worker_thread_count() if numbers >= MIN_THREADED else 1
    share = -(-count // max(1, workers))
    if workers == 1:
        run_range(0, count)
    else:
        tasks = [partial(run_range, first, min(first + share, count)) for first in range(0, count, share)]
        run_on_worker_threads(tasks)


def worker_thread_count() -> int:
    """Return the number of torch threads of the caller.

    The lock is needed: a thread new to torch takes over the current number, which is 1 while a pool starts.
    """
    with _lock:
        return torch.get_num_threads()


def _run_without_gradient(task: Callable[[], T], inference: bool) -> T:
    with torch.inference_mode() if inference else torch.no_grad():
        return task()


def start_worker_threads(number: int) -> ThreadPoolExecutor:
    """Start `number` worker threads that each run torch operations on one thread. torch's thread count is restored.

    `torch.set_num_threads` sets the number of the calling thread and the initial number of threads that haven't used
    torch yet. So each worker first calls get, which fixes its number, and then sets it to 1. Afterwards, the initial
    number is restored for other threads.
    """
    threads_before = torch.get_num_threads()
    started = threading.Barrier(number)  # no worker can take two of the first tasks, so all workers start
    pool = ThreadPoolExecutor(number, thread_name_prefix="regard", initializer=_initialise_worker_thread)
    try:
        wait([pool.submit(started.wait) for _ in range(number)])
    finally:
        torch.set_num_threads(threads_before)
    return pool


def _initialise_worker_thread() -> None:
    torch.get_num_threads()
    torch.set_num_threads(1)
    _state.working = True


def _forget_worker_threads() -> None:
    """Forget pools and lock in a forked child. It has no worker threads, and no thread would release the lock."""
    global _lock
    _lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):  # Windows can't fork
    os.register_at_fork(after_in_child=_forget_worker_threads)
