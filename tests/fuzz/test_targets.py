"""What fuzzing starts from is read, what it found is one line; and, nightly, a minute of it for each target."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"  # inputs that were findings: a target's name, and what was wrong


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_findings(name: str, tmp_path: Path) -> None:
    target = TARGETS[name](tmp_path)
    seeds = target.seeds()
    assert seeds
    for data in seeds:
        target(data)
        for cut in (data[:1], data[: len(data) // 2], data[:-1], data + b"\0", data.replace(b"0", b"-1")):
            target(cut)
    for file in sorted(CORPUS.glob(f"{name}-*")):
        target(file.read_bytes())
    getattr(target, "close", lambda: None)()


@pytest.mark.nightly
@pytest.mark.parametrize("name", TARGETS)
def test_a_minute_of_fuzzing(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", name, "--seconds", "60"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found = re.search(r"number_of_executed_units: (\d+)", done.stdout + done.stderr)
    assert found
    assert int(found[1]) > 1000
