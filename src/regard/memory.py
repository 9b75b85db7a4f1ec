"""Memory and devices that are foreseen: what an answer will take, what there is, and a refusal before it runs out."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import torch

from regard.errors import RegardError

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

SMALL = 1 << 26  # bytes that nobody asks about: 64 MiB
UNLIMITED = 1 << 60  # control groups without a limit give a number beyond any memory
MEMINFO, GROUP, GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
USED = Path("/proc/self/statm")  # pages of this process
LIMITS = {"RLIMIT_AS": 0, "RLIMIT_DATA": 5}  # limits of a process, and which number of USED counts against each


_most: ContextVar[int | None] = ContextVar("_most", default=None)


@contextmanager
def limit_memory_to(bytes: int) -> Iterator[None]:
    """Let nothing in the block take more bytes than so many for one answer, whatever the machine has."""
    before = _most.set(bytes)
    try:
        yield
    finally:
        _most.reset(before)


def require_memory(need: int, device: torch.device, what: str, helps: str) -> None:
    """Raise RegardError for what will not fit into memory, before it is begun.

    Args:
        need: bytes.
        what: what needs them, as the subject of a sentence.
        helps: what to do instead.

    Raises:
        RegardError: naming the need, what there is and what helps. Never where the system does not tell what there is.
    """
    if need < SMALL:
        return
    most = _most.get()
    if most is not None and need > most:
        raise RegardError(f"{what} needs {spelled(need)} of memory, {spelled(most)} are the most here: {helps}")
    there = available(device)
    if there is not None and need > there:
        raise RegardError(f"{what} needs {spelled(need)} of memory, {spelled(there)} are free: {helps}")


def available(device: torch.device) -> int | None:
    """Measure the bytes that can still be taken on a device, None where the system does not say.

    On CPUs under Linux: what the machine can give without swapping, and what the control groups and the limits of the
    process leave (ulimit -v, ulimit -d). On other systems the machine's whole memory, where it is known.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + cached
    if device.type != "cpu":
        return None
    machine = _memory_left_of_machine()
    return min(
        [*_memory_left_of_groups(), *_memory_limits_of_process(), *([] if machine is None else [machine])], default=None
    )


def device_to_load_on(device: str | torch.device | None) -> torch.device:
    """Return the device to run on, tried out; None stands for a CUDA device where there is one, else the CPU.

    Raises:
        RegardError: it cannot be used here.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise RegardError(f"device {str(device)!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return chosen


def give_memory_back() -> None:
    """Give the system the memory back that this process has freed. Under Linux's C library, which keeps much of it.

    It keeps blocks of up to 32 MB for later ones, which seldom fit where small ones have moved in between: a process
    that goes on for hours grows and grows.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another system, another C library
        return
    trim(0)


def spelled(bytes: int) -> str:
    """Format a number of bytes as a person reads it: 3.2 GiB."""
    size, unit = float(bytes), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"


def _memory_left_of_machine() -> int | None:
    """Measure what the machine has left; all it has where it does not say what is left."""
    for line in _lines_of_memory_file(MEMINFO):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None


def _memory_limits_of_process() -> list[int]:
    """Measure what the limits that are set for this process leave to it."""
    used = next(iter(_lines_of_memory_file(USED)), "").split()
    if resource is None or len(used) <= max(LIMITS.values()):
        return []
    page = os.sysconf("SC_PAGE_SIZE")
    soft = {name: resource.getrlimit(getattr(resource, name))[0] for name in LIMITS}
    return [
        max(0, soft[name] - int(used[place]) * page)
        for name, place in LIMITS.items()
        if soft[name] not in (resource.RLIM_INFINITY, -1) and soft[name] < UNLIMITED
    ]


def _memory_left_of_groups() -> list[int]:
    """Yield what each control group with a limit leaves to this process, those around its own included."""
    left = []
    for line in _lines_of_memory_file(GROUP):
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root, names = (GROUPS, VERSION_2) if controllers == "" else (GROUPS / "memory", VERSION_1)
        place = Path(path.lstrip("/"))
        for folder in [root / place, *(root / parent for parent in place.parents)]:
            limit, used = _number_in_memory_file(folder / names[0]), _number_in_memory_file(folder / names[1])
            if limit is not None and used is not None and limit < UNLIMITED:
                left.append(max(0, limit - used + _reclaimable(folder / "memory.stat", names[2])))
    return left


VERSION_2 = "memory.max", "memory.current", "inactive_file"
VERSION_1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"


def _reclaimable(file: Path, name: str) -> int:
    """Measure what a group holds of files and would give back: used, but free for who asks."""
    return next((int(line.split()[1]) for line in _lines_of_memory_file(file) if line.split()[0] == name), 0)


def _number_in_memory_file(file: Path) -> int | None:
    found = next(iter(_lines_of_memory_file(file)), "")
    return int(found) if found.isdigit() else None


def _lines_of_memory_file(file: Path) -> list[str]:
    """Read a small file's lines; none where there is no such file."""
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
