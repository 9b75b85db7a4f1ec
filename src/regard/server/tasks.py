"""Do one piece of work after another on threads of their own, with progress, a time limit and a way to stop it.

Two lines, so that one slow request doesn't starve another: what runs a model, one at a time, for it has all cores; and
what reads regions of attention maps that are there already, which somebody looks at.
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
Line = Literal["model", "regions"]
Gone = Callable[[], Awaitable[bool]]
REGIONS = 2  # threads that read regions; torch's own threads, which wait for each other, would slow small ones down
LOOKED = 0.25  # seconds between two looks whether who asked is still there
STOPPED = "stopped: it was asked for no longer"
CONTROLS = {  # what refusals of the library call what is to be changed, in the words of the page
    "window": "“read texts in windows”",
    "page": "trace shorter texts, or fewer of them",
    "with": "“beside”",
    "at": "choose a word of as many tokens in the other text",
    "source_at": "its word",
    "strength": "“strength”",
    "layer": "“layer”",
}
REMEMBERED = 256  # tasks whose progress can be asked for, the last ones


@dataclass(frozen=True)
class Limits:
    """Limits whose violation returns a status of 4xx and one line that names the limit.

    body: bytes of a request. characters: of all its texts. texts: how many. waiting: requests that wait for the model.
    seconds: of one request's work, its waiting not counted. memory: bytes that one answer may take, as it is foreseen.
    picture: bytes of a picture's file, which a request holds in base64.
    kept: bytes of traces that are held to be looked at; what was not looked at for the longest goes first. whole:
    tokens of a text up to which a browser gets queries and keys to compute with; of longer ones it gets tiles.
    occurrences: of a word whose path is followed, each two compared.
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
    """One piece of work: it reports how far it is, and asks whether it is to go on.

    done: the fraction that is done. waits: whether it has not begun. said: what it has written so far. waiters: those
    who wait for its answer.
    """

    answer: "asyncio.Future[Any]"

    def __init__(self, seconds: float) -> None:
        self.done, self.waits, self.said, self._seconds = 0.0, True, "", seconds
        self._stopped, self._until, self._lock = threading.Event(), float("inf"), threading.Lock()
        self.waiters = set[Waiter]()

    def begin(self) -> None:
        """Begin to count time. Raises HTTPException if it was stopped meanwhile."""
        self.waits, self._until = False, time.monotonic() + self._seconds
        self.go_on()

    def go_on(self) -> None:
        """Raise HTTPException if the task was stopped, or has had its time."""
        if self._stopped.is_set():
            raise HTTPException(409, STOPPED)
        if time.monotonic() > self._until:
            raise HTTPException(408, f"stopped after {self._seconds:g} seconds, the limit for one request")

    def advance(self, part: int | float) -> None:
        """Report that a further part is done, from any thread; raises HTTPException as `go_on`."""
        with self._lock:
            self.done = min(1.0, self.done + part)
        self.go_on()

    def say(self, text: str, done: float) -> None:
        """Report what is written so far, and how much of all that is; raises HTTPException as `go_on`."""
        self.said, self.done = text, done
        self.go_on()

    def stop(self) -> None:
        """Stop the task at its next step."""
        self._stopped.set()


class Waiter:
    """Somebody who waits for a task's answer: a task with other waiters goes on when one of them leaves."""

    def __init__(self, task: Task) -> None:
        self.task = task
        task.waiters.add(self)

    def stop(self) -> None:
        """Wait no longer; the last one who does stops the task."""
        self.task.waiters.discard(self)
        if not self.task.waiters:
            self.task.stop()


class TaskQueues:
    """The two lines of one server."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._threads: dict[Line, ThreadPoolExecutor] = {
            "model": ThreadPoolExecutor(1, "regard-model"),
            "regions": start_worker_threads(REGIONS),
        }
        self._most: dict[Line, int] = {"model": limits.waiting, "regions": 16 * limits.waiting}
        self._count: Counter[Line] = Counter()
        self._named: OrderedDict[str, Waiter] = OrderedDict()
        self._running: dict[str, Task] = {}

    async def do(
        self,
        line: Line,
        function: Callable[[Task], Answer],
        name: str | None = None,
        gone: Gone | None = None,
        question: str | None = None,
    ) -> Answer:
        """Wait for a piece of work.

        name: to ask for its progress by, or to stop it. gone: tells whether who asked went away; the work then stops.
        question: what names the answer; work that is requested under the same name meanwhile is done once for all.
        """
        task = self._running.get(question or "")
        joined = task is not None and bool(task.waiters)  # one that nobody waits for is being stopped
        if task is None or not joined:
            if self._count[line] >= self._most[line]:
                most = self._most[line]
                raise HTTPException(429, f"{most} requests are already waiting, the limit: try again soon")
            task = Task(self._limits.seconds)
        waiter = Waiter(task)
        if name is not None:  # before it begins, so that whoever asks how far it is finds it
            self._named[name] = waiter
            while len(self._named) > REMEMBERED:
                self._named.popitem(last=False)
        if not joined:
            self._begin(line, task, function, question)
        try:
            while not (await asyncio.wait({task.answer}, timeout=LOOKED))[0]:
                if gone is not None and await gone():
                    waiter.stop()
                if task.waiters and waiter not in task.waiters:
                    raise HTTPException(409, STOPPED)  # the others go on waiting
            return task.answer.result()
        finally:
            waiter.stop()

    def _begin(self, line: Line, task: Task, function: Callable[[Task], Any], question: str | None) -> None:
        """Put a task into a line."""
        context = contextvars.copy_context()

        def limited() -> Any:
            with limit_memory_to(self._limits.memory), controls_called(CONTROLS):
                return function(task)

        def run() -> Any:
            task.begin()
            return context.run(limited)

        task.answer = asyncio.get_running_loop().run_in_executor(self._threads[line], run)
        self._count[line] += 1
        if question is not None:
            self._running[question] = task

        def ended(done: "asyncio.Future[Any]") -> None:
            self._count[line] -= 1
            if question is not None and self._running.get(question) is task:
                del self._running[question]
            if not done.cancelled():
                done.exception()  # looked at, though all who asked have left

        task.answer.add_done_callback(ended)

    def waiter(self, name: str) -> Waiter | None:
        """Find who asked for a task under a name, None if nobody did."""
        return self._named.get(name)

    def close(self) -> None:
        """Stop what runs and let nothing begin."""
        for waiter in self._named.values():
            waiter.task.stop()
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)
