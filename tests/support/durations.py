"""Record what each test takes in units of a fixed loop, so that no test has to look at a clock.

`make test-all RECORD=1` writes tests/durations.json anew, a tier at a time: a part of one would pass for the whole. A
unit is the processor time of a fixed loop, measured in the same minutes: 0.02 s where the first record was made, and on
a slower machine as much longer as the tests are. The file has for each tier what all of its tests take together, and by
name those that take more than a fifth of a slow one.
"""

import json
import statistics
import time
from collections import defaultdict
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "durations.json"
TIERS = ("test", "apart", "docs")  # what the Makefile runs one after another
LOOP = 220_000  # additions of the fixed loop
SLOW = 50.0  # units from which on a test is slow: about a second
NAMED = SLOW / 5  # units from which on a test has a line of its own
EVERY = 50  # reports after which the loop is measured again


def loop_seconds() -> float:
    """Measure the processor seconds of the fixed loop."""
    start, total = time.thread_time(), 0
    for n in range(LOOP):
        total += n * n % 7
    return time.thread_time() - start


def slow_tests(file: Path = FILE) -> set[str]:
    """Read which tests are slow; none where nothing is recorded."""
    if not file.exists():
        return set()
    tiers = json.loads(file.read_text("utf-8"))
    return {name for tier in tiers.values() for name, units in tier["tests"].items() if units >= SLOW}


class Recorder:
    """Collects the durations of a tier's tests, as pytest reports them, and writes them at the end of a run."""

    def __init__(self, tier: str, file: Path = FILE) -> None:
        self.tier, self.file = tier, file
        self.seconds: dict[str, float] = defaultdict(float)
        self.loops = [loop_seconds()]
        self.reports = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        self.reports += 1
        if self.reports % EVERY == 0:
            self.loops.append(loop_seconds())

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the tier's part of the file anew; a run that failed changes nothing."""
        if exitstatus != 0:
            return
        unit = statistics.median(self.loops)
        units = {name: round(seconds / unit, 1) for name, seconds in self.seconds.items()}
        tiers = json.loads(self.file.read_text("utf-8")) if self.file.exists() else {}
        tiers[self.tier] = {
            "all": round(sum(units.values()), 1),
            "count": len(units),
            "tests": {name: units[name] for name in sorted(units) if units[name] >= NAMED},
        }
        tiers = {tier: tiers[tier] for tier in TIERS if tier in tiers}
        self.file.write_text(json.dumps(tiers, indent=1, ensure_ascii=False) + "\n", "utf-8")
