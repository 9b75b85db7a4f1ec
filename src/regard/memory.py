"""Foresee memory and devices: how much an answer will need, how much there is, and an error before it runs out."""

import ctypes
import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import torch

from regard.errors import RegardError, first_line

SMALL = 1 << 26  # bytes that nobody asks about: 64 MiB
MEMINFO, GROUP, GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")

_most: ContextVar[float] = ContextVar("_most", default=math.inf)


@contextmanager
def limit_memory_to(bytes: int) -> Iterator[None]:
    """Let one answer in the block take no more than so many bytes, whatever the machine has."""
    before = _most.set(bytes)
    try:
        yield
    finally:
        _most.reset(before)


def require_memory(need: int, device: torch.device, what: str, helps: str) -> None:
    """Raise RegardError before something begins that will not fit into memory.

    need: bytes. what: what needs them, as the subject of a sentence. helps: what to do instead.
    """
    if need < SMALL:
        return
    if need > _most.get():
        most = format_bytes(int(_most.get()))
        raise RegardError(f"{what} needs {format_bytes(need)} of memory, the limit is {most}: {helps}")
    there = available(device)
    if there is not None and need > there:
        raise RegardError(f"{what} needs {format_bytes(need)} of memory, only {format_bytes(there)} are free: {helps}")


def available(device: torch.device) -> int | None:
    """Return the bytes that a device has free, None if the system doesn't say.

    On Linux CPUs that is what the machine can give without swapping and its control groups allow.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    found = re.search(r"^MemAvailable: +(\d+) kB", _content(MEMINFO), re.M)
    if device.type != "cpu" or found is None:
        return None
    return min([int(found[1]) * 1024, *_left_in_groups()])


def device_to_load_on(device: str | torch.device | None) -> torch.device:
    """Return the device to run on, tried out; None means CUDA if there is such a device, else the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise RegardError(f"device {str(device)!r} cannot be used here: {first_line(error)}") from error
    return chosen


def give_memory_back() -> None:
    """Give freed memory back to the system: Linux's C library keeps much of it, so a long process would grow."""
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def format_bytes(bytes: int) -> str:
    """Format a number of bytes as a user reads it: 3.2 GiB."""
    power = min(max(bytes.bit_length() - 1, 0) // 10, 5)
    size = bytes / 1024**power
    return f"{size:.{int(power > 0 and size < 100)}f} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[power]}"


def _left_in_groups() -> list[int]:
    """Return what this process's control group, and each around it, leaves to it; cached files count as free."""
    left = []
    group = GROUPS / _content(GROUP).rpartition("0::/")[2].strip()
    for folder in (group, *group.parents):
        limit, used = _content(folder / "memory.max").strip(), _content(folder / "memory.current").strip()
        if limit.isdigit() and used.isdigit():
            cached = re.search(r"^inactive_file (\d+)", _content(folder / "memory.stat"), re.M)
            left.append(max(0, int(limit) - int(used) + (int(cached[1]) if cached else 0)))
    return left


def _content(file: Path) -> str:
    """Return a small file's text, empty if there is no such file."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""
