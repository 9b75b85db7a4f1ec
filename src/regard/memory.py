"""Check a device and its free memory before a computation, to raise an error instead of running out of memory."""

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

SMALL = 1 << 26  # bytes: smaller computations aren't checked
MEMINFO, GROUP, GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")

_most: ContextVar[float] = ContextVar("_most", default=math.inf)


@contextmanager
def limit_memory_to(bytes: int) -> Iterator[None]:
    """Limit the memory of computations in the block to a number of bytes, even if the machine has more."""
    before = _most.set(bytes)
    try:
        yield
    finally:
        _most.reset(before)


def require_memory(need: int, device: torch.device, task: str, helps: str) -> None:
    """Raise RegardError if a computation needs more memory than is free or allowed.

    need: bytes. task: the computation, as the subject of a sentence. helps: advice for the error message.
    """
    if need < SMALL:
        return
    if need > _most.get():
        limit = format_bytes(int(_most.get()))
        raise RegardError(f"{task} needs {format_bytes(need)} of memory, the limit is {limit}: {helps}")
    free = available(device)
    if free is not None and need > free:
        raise RegardError(f"{task} needs {format_bytes(need)} of memory, only {format_bytes(free)} are free: {helps}")


def available(device: torch.device) -> int | None:
    """Return the number of free bytes of a device, None if the system doesn't report it.

    For the CPU on Linux: the bytes available without swapping and within the limits of the process's control groups.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    match = re.search(r"^MemAvailable: +(\d+) kB", _file_text(MEMINFO), re.M)
    if device.type != "cpu" or match is None:
        return None
    return min([int(match[1]) * 1024, *_free_bytes_of_control_groups()])


def device_to_load_on(device: str | torch.device | None) -> torch.device:
    """Return the device to run on, after testing it. None means CUDA if it is available, otherwise the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise RegardError(f"device {str(device)!r} cannot be used here: {first_line(error)}") from error
    return chosen


def give_memory_back() -> None:
    """Return freed memory to the system. Linux's C library keeps much of it, so a long-running process would grow."""
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def format_bytes(bytes: int) -> str:
    """Format a number of bytes in the largest suitable unit, such as "3.2 GiB"."""
    power = min(max(bytes.bit_length() - 1, 0) // 10, 5)
    size = bytes / 1024**power
    return f"{size:.{int(power > 0 and size < 100)}f} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[power]}"


def _free_bytes_of_control_groups() -> list[int]:
    """Return the free bytes in this process's control group and in each parent. Cached files count as free."""
    left = []
    group = GROUPS / _file_text(GROUP).rpartition("0::/")[2].strip()
    for folder in (group, *group.parents):
        limit, used = _file_text(folder / "memory.max").strip(), _file_text(folder / "memory.current").strip()
        if limit.isdigit() and used.isdigit():
            cached = re.search(r"^inactive_file (\d+)", _file_text(folder / "memory.stat"), re.M)
            left.append(max(0, int(limit) - int(used) + (int(cached[1]) if cached else 0)))
    return left


def _file_text(file: Path) -> str:
    """Return the text of a small file, "" if there is no such file."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""
