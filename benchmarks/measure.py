"""How everything here is measured: both sides in turns, medians, this machine named with what its products achieve."""

import os
import platform
import re
import statistics
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch

from regard.attention.kernels import matmul, threads

MIB = 1 << 20
ROWS, COLS, WIDTH = 512, 1024, 64  # of the product that attention's tiles make
REPEATS = 200
clock = time.perf_counter  # or time.process_time, where others use the machine


def rounds(theirs: Callable[[], object], ours: Callable[[], object], count: int) -> tuple[float, float, float]:
    """Median seconds of both, taking turns, and the median of the rounds' ratios: a busy moment meets both."""
    theirs(), ours()
    times = [(seconds(theirs), seconds(ours)) for _ in range(count)]
    against, mine = zip(*times, strict=True)
    return statistics.median(against), statistics.median(mine), statistics.median(b / a for a, b in times)


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    start = clock()
    call()
    return clock() - start


def resident(field: str) -> int:
    """Bytes of this process's memory by Linux's count: VmRSS now, VmHWM at its peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith(field))


def verdict(got: float, target: float) -> str:
    """Whether a target was met."""
    return "" if got <= target else "  MISSED"


@cache
def product_speed() -> float:
    """GFLOP/s of the product that attention's tiles are made by, on all threads at once, from the cache."""
    multiply = matmul.product()

    def work() -> float:
        x, y = torch.ones(ROWS, WIDTH), torch.ones(COLS, WIDTH)
        multiply(x, y)
        return min(seconds(lambda: multiply(x, y)) for _ in range(REPEATS))

    return sum(
        2e-9 * ROWS * COLS * WIDTH / took
        for took in threads.run_on_worker_threads([work] * threads.worker_thread_count())
    )


def share_of_peak(operations: float, took: float) -> str:
    """What a time means in GFLOP/s, and as a share of the product's own."""
    achieved = operations / took * 1e-9
    return f"{achieved:.0f} GFLOP/s, {achieved / product_speed():.2f} of the product's own"


def machine() -> str:
    """What this was measured on: processor, threads, torch and the libraries of its products, load."""
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    version, onednn = matmul.library_versions()
    products = f"{blas[1] if blas else 'own BLAS'}{f' {version}' if version else ''}"
    products += f", oneDNN {onednn}" if onednn else ""
    capability = torch.backends.cpu.get_cpu_capability()
    return f"{name} ({capability}), {torch.get_num_threads()} threads, torch {torch.__version__} ({products}){load}"
