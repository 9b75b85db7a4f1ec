"""What starting the command costs: python -m benchmarks.start

Each call is a process of its own, from its start to its end; the first of each kind is not counted: it reads files from
the disk and writes bytecode, as an installation has it. The kinds take turns. Processor time stands beside wall time,
since a machine that works for others stretches the one alone. `--imports` says where a call's imports go, by package,
from `python -X importtime`; that takes time of its own, so that its sum is above what a call takes.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import transformers

from benchmarks.attention import machine, verdict

TEXT = "A man fishing on a river bank."
TARGET, HELP = 3.5, 0.5  # seconds of wall time
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
LINE = re.compile(r"^import time: +(\d+) \| +\d+ \| +([\w.]+)$", re.M)


def main() -> None:
    """Print wall and processor time of each kind of call, or where its imports go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--imports", action="store_true", help="where imports go, by package")
    given = parser.parse_args()
    print(f"{machine()}, transformers {transformers.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        if given.imports:
            imports(Path(folder))
        else:
            calls(Path(folder), given.rounds)


def calls(folder: Path, rounds: int) -> None:
    """Print what each kind of call takes, medians of the rounds, with the fastest in brackets."""
    see = [sys.executable, "-m", "regard", "see", TEXT]
    kinds = {
        "regard see": (see, TARGET),
        "with --figure": ([*see, "--figure", str(folder / "a.png")], None),
        "with --html": ([*see, "--html", str(folder / "a.html")], None),
        "regard --help": ([sys.executable, "-m", "regard", "--help"], HELP),
        "regard --version": ([sys.executable, "-m", "regard", "--version"], HELP),
        "a verb that there is not": ([sys.executable, "-m", "regard", "sea"], HELP),
        "an option that there is not": ([*see, "--no"], HELP),
        "import torch, alone": ([sys.executable, "-c", "import torch"], None),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for number in range(rounds + 1):
        for name, (call, _) in kinds.items():
            took = timed(call)
            if number:
                times[name].append(took)
    for name, (_, target) in kinds.items():
        walls, processors = zip(*times[name], strict=True)
        wall, processor = statistics.median(walls), statistics.median(processors)
        told = "" if target is None else f", at most {target:.1f}{verdict(wall, target)}"
        print(f"  {name}: {wall:.2f} s ({min(walls):.2f}), processor {processor:.2f} s ({min(processors):.2f}){told}")


def timed(call: list[str]) -> tuple[float, float]:
    """Wall and processor time of a call, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imports(folder: Path) -> None:
    """Print the packages that a short text's imports spend most in, and how many modules they are."""
    call = [sys.executable, "-X", "importtime", "-m", "regard", "see", TEXT]
    for _ in range(2):
        done = subprocess.run(call, capture_output=True, text=True, cwd=folder, env=ENVIRONMENT, check=True)
    lines = LINE.findall(done.stderr)
    spent, modules = Counter[str](), Counter[str]()
    for microseconds, module in lines:
        first, *rest = module.split(".")
        name = ".".join([first, *rest[:1]]) if first in ("torch", "transformers") else first
        spent[name] += int(microseconds)
        modules[name] += 1
    print(f"  all: {sum(spent.values()) / 1e6:.2f} s, {len(lines)} modules")
    for name, microseconds in spent.most_common(24):
        print(f"  {name}: {microseconds / 1e3:.0f} ms, {modules[name]} modules")


if __name__ == "__main__":
    main()
