"""Locks on open files: one holder at a time, released when its file is closed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.locks import AVAILABLE, held_elsewhere, is_held, lock, stands_at

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="the system has no locks on files")


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT)


def test_one_of_two_has_the_lock_until_it_is_closed(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "a"), opened(tmp_path / "a")
    try:
        assert lock(first)
        assert not lock(second)
        assert held_elsewhere(second)
        assert not held_elsewhere(first)  # its own lock
    finally:
        os.close(first)
    assert not held_elsewhere(second)  # which locks it
    third = opened(tmp_path / "a")
    assert not lock(third)
    os.close(second)
    assert lock(third)
    os.close(third)


def test_looking_whether_it_is_locked_locks_nothing(tmp_path: Path) -> None:
    first, second, third = (opened(tmp_path / "a") for _ in range(3))
    try:
        assert not is_held(second)
        assert lock(first)  # what looked has let go
        assert is_held(second)
        assert is_held(third)
    finally:
        os.close(first)
    assert not is_held(second)
    os.close(second)
    os.close(third)


HOLDER = """
import os, sys
from regard.locks import lock
handle = os.open(sys.argv[1], os.O_RDWR)
print(lock(handle), flush=True)
sys.stdin.readline()
"""


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    handle = opened(tmp_path / "a")
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "a")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert held_elsewhere(handle)
        other.kill()
        other.wait()
    assert lock(handle, wait=True)
    os.close(handle)


def test_a_file_that_was_replaced_stands_there_no_more(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    handle = opened(path)
    assert stands_at(handle, path)
    assert not stands_at(handle, other)
    other.write_text("")
    assert not stands_at(handle, other)
    other.replace(path)
    assert not stands_at(handle, path)
    os.close(handle)
    assert not stands_at(handle, path)  # a closed file stands nowhere
