"""What only a fresh process shows: memory, the cache of compiled passes, a fork."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

MEMORY = """
import json, resource, sys, torch, regard
from regard.attention.kernels import dispatch
dispatch.CPU_SPEED = 0
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 if sys.platform == "darwin" else 1024 / 1024) / 1024
def both(n):
    x = torch.randn(1, 1, n, 16)
    result = regard.attend(x, x, x, causal=True)
    assert result.kernel == "blockwise-cpu"
    result.weights.statistics()
both(1024)
before = peak()
both(int(sys.argv[1]))
print(json.dumps(peak() - before))
"""

COMPILE = """
import torch, regard
from regard.attention.kernels import dispatch
dispatch.CPU_SPEED = 0
x = torch.randn(1, 2, 1024, 16)
print(len(regard.attend(x, x, x).weights.statistics().entropy[0]))
"""

FORK = """
import os, torch
from regard.attention.kernels.cpu import forward
from regard.attention.scores import ScoreRule
x = torch.randn(1, 2, 600, 8, generator=torch.Generator().manual_seed(0))
before = forward.forward(x, x, x, ScoreRule(1.0))[0]
child = os.fork()
if child == 0:
    torch.set_num_threads(1)
    os._exit(0 if torch.equal(before, forward.forward(x, x, x, ScoreRule(1.0))[0]) else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

NO_FOLDER = (
    """
from numba.core import caching
caching.CacheImpl._locator_classes = []
"""
    + COMPILE
)


def python(code: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="the resource module is missing there")
def test_memory_grows_with_the_length_not_its_square() -> None:
    small, large = (json.loads(python(MEMORY, str(n))) for n in (4096, 16384))  # MiB; n×n would take 64 and 1024
    assert large < 60
    assert large < 4 * max(small, 5) + 10


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    kept = []
    for _ in range(2):
        python(COMPILE, NUMBA_CACHE_DIR=str(tmp_path))
        kept.append({file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nbc")})
    assert kept[0] == kept[1] != {}


def test_no_folder_to_cache_in() -> None:
    assert python(NO_FOLDER).strip() == "2"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child() -> None:
    assert python(FORK).strip() == "0"
