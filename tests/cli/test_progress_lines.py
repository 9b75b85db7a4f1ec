"""Lines through a pipe: each at once, and one is due where none was told for a while."""

import io
import sys
import threading
import time

import pytest

from regard.cli.progress_lines import ProgressLines


class Counted(io.StringIO):
    """What was written, and how much of it was flushed."""

    flushed = ""

    def flush(self) -> None:
        self.flushed = self.getvalue()


def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    out = Counted()
    monkeypatch.setattr(sys, "stdout", out)
    return out


def test_a_line_is_due_after_every_seconds_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    out = counted(monkeypatch)
    now = [100.0]
    telling = ProgressLines(every=20.0, clock=lambda: now[0])
    for second in range(1, 65):  # as the thread asks: each second
        now[0] = 100.0 + second
        if second == 5:
            telling.doing("step 3 of 9")
        if second == 30:
            telling.say("held out 1.5")
        telling.tick()
    assert out.flushed.splitlines() == ["step 3 of 9 (20 s)", "held out 1.5", "step 3 of 9 (50 s)"]


def test_a_thread_asks_until_the_end_and_where_no_bar_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    out = counted(monkeypatch)
    with ProgressLines(every=0.0) as telling:
        telling.doing("working")
        until = time.monotonic() + 60
        while not out.flushed and time.monotonic() < until:
            time.sleep(0.05)
    assert "working (" in out.flushed
    threads = threading.active_count()
    with ProgressLines(every=0.0, alone=False):
        assert threading.active_count() == threads


def test_what_nobody_reads_any_more_ends_the_thread_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    out = counted(monkeypatch)
    with ProgressLines(every=0.0):
        out.close()
        time.sleep(1.5)  # an error in a thread would fail this test
