"""Build shards of documents in processes of this machine, one thread each; more are handed out as others are done."""

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from regard.corpus.environment import digest_model
from regard.corpus.settings import Settings
from regard.corpus.writing.build_shard import DocumentReader, build_shard
from regard.corpus.writing.cut_windows import WindowSize
from regard.corpus.writing.store_folder import ShardPlan, read_counts, write_shard
from regard.errors import RegardError
from regard.memory import give_memory_back
from regard.models.load import load
from regard.models.model import Model

AHEAD = 2  # shards that wait for each worker: their texts are in memory


@dataclass(frozen=True)
class Job:
    """What a worker has to know to build any shard of a store; it can be sent to another process.

    folder: where shards are written. source, digest: the model, as `regard.load` takes it, and what it has to be.
    """

    folder: Path
    source: str | None
    digest: str
    settings: Settings
    layers: list[int]
    size: WindowSize


Built = tuple[ShardPlan, dict[str, int], bool]  # a shard, its counts, and whether it was built now


def build(job: Job, reading: DocumentReader, plan: ShardPlan) -> dict[str, int]:
    """Build and write one shard, and return its counts."""
    counts = read_counts(write_shard(job.folder, plan.name, build_shard(reading, plan.documents)))
    give_memory_back()
    return counts


def build_here(job: Job, model: Model, plans: Iterable[ShardPlan]) -> Generator[Built, None, None]:
    """Build the shards that are not there yet one after another, in this process and one thread."""
    reading, threads = DocumentReader(model, job.layers, job.size, job.settings), torch.get_num_threads()
    for plan in plans:
        missing = not (job.folder / plan.name).is_dir()
        torch.set_num_threads(1)
        try:
            counts = build(job, reading, plan) if missing else read_counts(job.folder / plan.name)
        finally:
            torch.set_num_threads(threads)
        yield plan, counts, missing


def build_in_processes(job: Job, plans: Iterable[ShardPlan], workers: int) -> Generator[Built, None, None]:
    """Build the shards that are not there yet in so many processes; yield all of them in order."""
    context = multiprocessing.get_context("spawn")  # a forked child of a process that ran kernels can hang
    ours, end = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_shard_worker, initargs=(ours,))
    waiting: deque[tuple[ShardPlan, Future[dict[str, int]] | None]] = deque()

    def next_built() -> Built:
        plan, future = waiting.popleft()
        return plan, read_counts(job.folder / plan.name) if future is None else future.result(), future is not None

    try:
        for plan in plans:
            with _without_script():
                waiting.append((plan, None if (job.folder / plan.name).is_dir() else pool.submit(_work, job, plan)))
            while len(waiting) > workers * AHEAD or (waiting and waiting[0][1] is None):
                yield next_built()
        while waiting:
            yield next_built()
        pool.shutdown(wait=True)
    except BrokenProcessPool as error:
        raise RegardError(
            "a worker was ended before its shard was written (is there enough memory for all workers?): what is "
            "written stays, the same command goes on from there"
        ) from error
    finally:
        end.close()  # where something failed: nobody waits for what the workers are at
        pool.shutdown(wait=True, cancel_futures=True)
        ours.close()


_worker: dict[str, Any] = {}


def _start_shard_worker(pipe: Connection) -> None:
    """Set a process up. pipe: its other end is the parent's alone: it closes when the parent ends, however it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle

    def end_with_parent() -> None:
        wait([pipe])
        os._exit(1)  # a shard is written whole or not at all

    threading.Thread(target=end_with_parent, daemon=True).start()


@contextmanager
def _without_script() -> Iterator[None]:
    """Start processes that do not run the caller's script again, for they need nothing that is in it.

    They begin with Ctrl-C blocked: it is the parent's to handle, also while they import what they need. One that comes
    meanwhile waits for the end of the block.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        sys.modules["__main__"] = script


def _work(job: Job, plan: ShardPlan) -> dict[str, int]:
    """Build a shard in a worker, which loads the job's model and sets itself up before its first shard."""
    if not _worker:
        torch.set_num_threads(1)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        model = load(job.source, device="cpu")
        if digest_model(model) != job.digest:
            raise RegardError(f"model {job.source!r} is not the one of the store: its weights or tokenizer differ")
        _worker["reading"] = DocumentReader(model, job.layers, job.size, job.settings)
        # what is loaded stays to the end: the collector need not look at it each time that a shard makes many objects
        gc.freeze()
    return build(job, _worker["reading"], plan)
