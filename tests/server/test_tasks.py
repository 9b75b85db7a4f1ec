"""The two lines of work: order, progress, limits, and that one does not hold up the other."""

import asyncio
import threading
import time

import pytest
import torch
from starlette.exceptions import HTTPException

from regard.errors import RegardError
from regard.memory import require_memory
from regard.server.tasks import Limits, QueueName, Task, TaskQueues


def test_progress_is_told_and_the_answer_given() -> None:
    work, seen = TaskQueues(Limits()), []

    def doing(task: Task) -> int:
        assert not task.waits
        for _ in range(4):
            task.advance(0.25)
            found = work.waiter("a")
            assert found is not None
            assert found.task is task
            seen.append(found.task.done)
        return 7

    assert asyncio.run(work.run("model", doing, "a")) == 7
    assert seen == [0.25, 0.5, 0.75, 1.0]
    assert work.waiter("b") is None
    work.close()


def test_one_line_does_not_hold_up_the_other_and_each_keeps_its_order() -> None:
    work, free, order = TaskQueues(Limits()), threading.Event(), []

    def slow(task: Task) -> None:
        assert free.wait(20)
        order.append("slow")

    async def both() -> None:
        first = asyncio.create_task(work.run("model", slow))
        second = asyncio.create_task(work.run("model", lambda task: order.append("second")))
        await asyncio.sleep(0.05)
        await work.run("regions", lambda task: order.append("region"))
        free.set()
        await asyncio.gather(first, second)

    asyncio.run(both())
    assert order == ["region", "slow", "second"]
    work.close()


def test_more_than_may_wait_are_refused() -> None:
    work, free = TaskQueues(Limits(waiting=2)), threading.Event()

    async def three() -> list[object]:
        waiting = [asyncio.create_task(work.run("model", lambda task: free.wait(20))) for _ in range(3)]
        await asyncio.sleep(0.05)
        free.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    found = asyncio.run(three())
    assert found[:2] == [True, True]
    assert isinstance(found[2], HTTPException)
    assert found[2].status_code == 429
    assert asyncio.run(work.run("model", lambda task: 1)) == 1  # there is room again
    work.close()


def test_work_ends_when_its_time_is_over() -> None:
    work = TaskQueues(Limits(seconds=0.05))

    def forever(task: Task) -> None:
        while True:
            time.sleep(0.01)
            task.check_running()

    with pytest.raises(HTTPException, match="0.05 seconds") as found:
        asyncio.run(work.run("model", forever))
    assert found.value.status_code == 408
    work.close()


def test_work_ends_when_it_is_stopped_or_who_asked_went_away() -> None:
    work = TaskQueues(Limits())

    def forever(task: Task) -> None:
        while True:
            time.sleep(0.01)
            task.advance(0.0)

    async def stopped() -> None:
        doing = asyncio.create_task(work.run("model", forever, "a"))
        await asyncio.sleep(0.05)
        found = work.waiter("a")
        assert found is not None
        found.stop()
        await doing

    async def gone() -> bool:
        return True

    for doing in (stopped(), work.run("model", forever, disconnected=gone)):
        with pytest.raises(HTTPException, match="asked for no longer") as found:
            asyncio.run(doing)
        assert found.value.status_code == 409
    work.close()


def test_equal_questions_asked_at_once_are_answered_once_and_one_who_leaves_stops_none_of_the_others() -> None:
    work, free, done = TaskQueues(Limits(waiting=2)), threading.Event(), []

    def doing(task: Task) -> int:
        assert free.wait(20)
        task.check_running()
        done.append(task)
        return 7

    async def asked() -> list[object]:
        names = ("a", "b", "c")
        waiting = [asyncio.create_task(work.run("model", doing, name, question="same")) for name in names]
        other = asyncio.create_task(work.run("model", lambda task: 5, question="other"))
        await asyncio.sleep(0.05)
        found = [work.waiter(name) for name in names]
        assert all(each is not None and each.task is found[0].task for each in found)  # type: ignore[union-attr]
        found[0].stop()  # type: ignore[union-attr]
        left = (await asyncio.gather(waiting[0], return_exceptions=True))[0]
        free.set()
        return [left, *await asyncio.gather(*waiting[1:], other)]

    left, *answers = asyncio.run(asked())
    assert isinstance(left, HTTPException)
    assert left.status_code == 409
    assert answers == [7, 7, 5]
    assert len(done) == 1
    assert asyncio.run(work.run("model", doing, question="same")) == 7
    assert len(done) == 2  # it is no longer being answered: where answers are kept is not here
    work.close()


def test_a_question_that_nobody_waits_for_any_more_is_not_joined() -> None:
    work, begun = TaskQueues(Limits()), threading.Event()

    def forever(task: Task) -> None:
        begun.set()
        while True:
            time.sleep(0.3)
            task.check_running()

    async def asked() -> list[object]:
        first = asyncio.create_task(work.run("model", forever, "a", question="same"))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        found = work.waiter("a")
        assert found is not None
        found.stop()
        second = asyncio.create_task(work.run("model", lambda task: 7, question="same"))
        return await asyncio.gather(first, second, return_exceptions=True)

    first, second = asyncio.run(asked())
    assert isinstance(first, HTTPException)
    assert second == 7
    work.close()


def test_what_a_piece_of_work_raises_reaches_who_asked() -> None:
    work = TaskQueues(Limits())

    def wrong(task: Task) -> None:
        raise ValueError("so")

    with pytest.raises(ValueError, match="so"):
        asyncio.run(work.run("regions", wrong))
    work.close()


@pytest.mark.parametrize("line", ["model", "regions"])
def test_an_answer_that_would_take_too_much_memory_is_refused(line: QueueName) -> None:
    def large(task: Task) -> None:
        require_memory(200_000_000, torch.device("cpu"), "the answer", "take less")

    work = TaskQueues(Limits(memory=100_000_000))
    with pytest.raises(RegardError, match=r"the answer needs 191 MiB of memory, the limit is 95\.4 MiB: take less"):
        asyncio.run(work.run(line, large))
    work.close()
