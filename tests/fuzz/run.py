"""Fuzz one target: python -m tests.fuzz.run TARGET [--seconds N] [--runs N] [--seed N]

By Atheris (libFuzzer, which follows what code an input reaches) where it is installed, else by changes that Hypothesis
draws. What is found is an exception, with the input written out; more than ten seconds or 2 GB for one input are too.
"""

import argparse
import contextlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FOUND = Path("out", "fuzz")  # where inputs that were found are written
LONGEST = 4096  # bytes of an input beyond its seed's


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=-1, help="how many inputs; -1: as many as there is time for")
    parser.add_argument("--seed", type=int, default=0, help="of random numbers; 0: another one each time")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=shared_memory()) as folder:
        try:
            import atheris
        except ImportError:
            by_hypothesis(made(given.target, Path(folder)), given.seconds, given.runs, given.seed)
            return
        with atheris.instrument_imports(include=["regard"]):
            target = made(given.target, Path(folder))
        by_atheris(atheris, target, Path(folder), given)


def made(name: str, folder: Path) -> Any:
    """The target of that name, which keeps its files in a folder."""
    from tests.fuzz.targets import TARGETS

    return TARGETS[name](folder)


def shared_memory() -> str | None:
    """A folder that is held in memory, where the system has one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def by_atheris(atheris: Any, target: Any, folder: Path, given: argparse.Namespace) -> None:
    """Run libFuzzer, which ends the process itself."""
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed{number}").write_bytes(seed)
    most = max(map(len, target.seeds())) + LONGEST
    FOUND.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={given.seconds}", f"-runs={given.runs}", f"-seed={given.seed}", f"-max_len={most}",
        "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1", "-verbosity=0",
        f"-artifact_prefix={FOUND}/",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda data: target(data) if data else None)
    with contextlib.suppress(SystemExit):
        atheris.Fuzz()


def by_hypothesis(target: Any, seconds: int, runs: int, seed: int) -> None:
    """Change the seeds in a few places, for as long as there is time."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    until, count = time.monotonic() + seconds, 0
    changes = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 9), st.binary(max_size=9)), max_size=5)

    def run(start: bytes, changed: list[tuple[int, int, bytes]]) -> None:
        nonlocal count
        if time.monotonic() > until:
            return
        count += 1
        for place, removed, put in changed:
            at = place % (len(start) + 1)
            start = start[:at] + put + start[at + removed :]
        if start:
            target(start)

    chosen = settings(
        max_examples=runs if runs > 0 else 1000, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    while time.monotonic() < until and (count < runs or runs < 0):
        seeded(seed + count if seed else time.time_ns())(chosen(given(st.sampled_from(target.seeds()), changes)(run)))()
    print(f"number_of_executed_units: {count}")


if __name__ == "__main__":
    main()
