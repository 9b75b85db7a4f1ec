"""Run the server's tasks from queues in threads, with progress, a time limit and a way to stop them.

One queue is for forward passes, which run one at a time because they use all cores. The other is for reading regions
of computed attention matrices, so that slow forward passes don't delay what the user looks at.
"""

import asyncio
import contextvars
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from starlette.exceptions import HTTPException

from regard.attention.kernels.threads import start_worker_threads
from regard.errors import controls_called
from regard.memory import limit_memory_to

Answer = TypeVar("Answer")
QueueName = Literal["model", "regions"]
IsDisconnected = Callable[[], Awaitable[bool]]
REGIONS = 2  # threads that read regions. Torch's own threads would slow down small reads
CHECK_INTERVAL = 0.25  # seconds between checks whether the client is still connected
STOPPED = "stopped: it was asked for no longer"
CONTROLS = {  # the page's labels for arguments named in the library's errors
    "window": "“read texts in windows”",
    "page": "trace shorter texts, or fewer of them",
    "with": "“beside”",
    "at": "choose a word of as many tokens in the other text",
    "source_at": "its word",
    "strength": "“strength”",
    "layer": "“layer”",
}
MAX_REMEMBERED_TASKS = 256  # number of most recent tasks whose progress can be requested


@dataclass(frozen=True)
class Limits:
    """The server's limits. A request that exceeds one gets a 4xx status and a line that names the limit.

    body: bytes of a request. characters: characters in all texts of a request. texts: number of its texts. waiting:
    requests that wait for the model. seconds: working time for a request, without waiting. memory: estimated bytes
    for an answer. picture: bytes of an image file, before base64.
    kept: bytes of cached pages. The least recently used are dropped. whole: tokens of the longest text for which a
    browser gets queries and keys. For longer texts, it gets tiles.
    occurrences: occurrences of a word whose path is shown, because every pair is compared.
    """

    body: int = 8_000_000
    characters: int = 2_000_000
    texts: int = 16
    waiting: int = 16
    picture: int = 5_000_000
    seconds: float = 300.0
    memory: int = 8_000_000_000
    kept: int = 600_000_000
    whole: int = 4_096
    occurrences: int = 100


class Task:
    """A task of the server, which reports its progress and checks whether to continue.

    done: the completed fraction. waits: whether it hasn't started. text: the text generated so far. waiters: requests
    that wait for its answer.
    """

    answer: "asyncio.Future[Any]"

    def __init__(self, seconds: float) -> None:
        self.done, self.waits, self.text, self._seconds = 0.0, True, "", seconds
        self._stop_requested, self._deadline, self._lock = threading.Event(), float("inf"), threading.Lock()
        self.waiters = set[Waiter]()

    def begin(self) -> None:
        """Start the time limit. Raises HTTPException if the task has already been stopped."""
        self.waits, self._deadline = False, time.monotonic() + self._seconds
        self.check_running()

    def check_running(self) -> None:
        """Raise HTTPException if the task was stopped or has exceeded its time limit."""
        if self._stop_requested.is_set():
            raise HTTPException(409, STOPPED)
        if time.monotonic() > self._deadline:
            raise HTTPException(408, f"stopped after {self._seconds:g} seconds, the limit for one request")

    def advance(self, part: int | float) -> None:
        """Add a fraction to the progress, from any thread. Raises HTTPException like `check_running`."""
        with self._lock:
            self.done = min(1.0, self.done + part)
        self.check_running()

    def report_text(self, text: str, fraction: float) -> None:
        """Set the generated text and the completed fraction. Raises HTTPException like `check_running`."""
        self.text, self.done = text, fraction
        self.check_running()

    def stop(self) -> None:
        """Stop the task at its next check."""
        self._stop_requested.set()


class Waiter:
    """A request that waits for a task's answer. A task runs as long as it has waiters."""

    def __init__(self, task: Task) -> None:
        self.task = task
        task.waiters.add(self)

    def stop(self) -> None:
        """Stop waiting for the task, and stop the task if it has no other waiter."""
        self.task.waiters.discard(self)
        if not self.task.waiters:
            self.task.stop()


class TaskQueues:
    """The two task queues of a server: forward passes, and reads of matrix regions."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._threads: dict[QueueName, ThreadPoolExecutor] = {
            "model": ThreadPoolExecutor(1, "regard-model"),
            "regions": start_worker_threads(REGIONS),
        }
        self._max_waiting: dict[QueueName, int] = {"model": limits.waiting, "regions": 16 * limits.waiting}
        self._count: Counter[QueueName] = Counter()
        self._waiters_by_name: OrderedDict[str, Waiter] = OrderedDict()
        self._running: dict[str, Task] = {}

    async def run(
        self,
        line: QueueName,
        function: Callable[[Task], Answer],
        name: str | None = None,
        disconnected: IsDisconnected | None = None,
        question: str | None = None,
    ) -> Answer:
        """Queue a function as a task, and return its answer.

        name: the job's name, to request its progress or stop it. disconnected: returns whether the client is gone,
        which ends its wait. question: a key for the answer. Requests with the same key share a running task.
        """
        task = self._running.get(question or "")
        joined = task is not None and bool(task.waiters)  # a task without waiters is being stopped
        if task is None or not joined:
            if self._count[line] >= self._max_waiting[line]:
                limit = self._max_waiting[line]
                raise HTTPException(429, f"{limit} requests are already waiting, the limit: try again soon")
            task = Task(self._limits.seconds)
        waiter = Waiter(task)
        if name is not None:  # registered before the start, so that progress can be requested
            self._waiters_by_name[name] = waiter
            while len(self._waiters_by_name) > MAX_REMEMBERED_TASKS:
                self._waiters_by_name.popitem(last=False)
        if not joined:
            self._submit(line, task, function, question)
        try:
            while not (await asyncio.wait({task.answer}, timeout=CHECK_INTERVAL))[0]:
                if disconnected is not None and await disconnected():
                    waiter.stop()
                if task.waiters and waiter not in task.waiters:
                    raise HTTPException(409, STOPPED)  # other waiters continue to wait
            return task.answer.result()
        finally:
            waiter.stop()

    def _submit(self, line: QueueName, task: Task, function: Callable[[Task], Any], question: str | None) -> None:
        """Submit a task to the threads of its queue."""
        context = contextvars.copy_context()

        def call_with_limits() -> Any:
            with limit_memory_to(self._limits.memory), controls_called(CONTROLS):
                return function(task)

        def run_function() -> Any:
            task.begin()
            return context.run(call_with_limits)

        task.answer = asyncio.get_running_loop().run_in_executor(self._threads[line], run_function)
        self._count[line] += 1
        if question is not None:
            self._running[question] = task

        def on_end(future: "asyncio.Future[Any]") -> None:
            self._count[line] -= 1
            if question is not None and self._running.get(question) is task:
                del self._running[question]
            if not future.cancelled():
                future.exception()  # retrieved even if all clients are gone, to avoid a warning

        task.answer.add_done_callback(on_end)

    def waiter(self, name: str) -> Waiter | None:
        """Return a job's waiter by name, or None."""
        return self._waiters_by_name.get(name)

    def close(self) -> None:
        """Stop running tasks and cancel queued ones."""
        for waiter in self._waiters_by_name.values():
            waiter.task.stop()
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)
