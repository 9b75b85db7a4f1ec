"""Which faults the tests would not see: mutants of pure functions, made by cosmic-ray, and whether a test dies of each.

python -m benchmarks.mutants [--count 150] [--seed 7] [--module masks]     needs: pip install cosmic-ray

Random mutants of each module's code (annotations aside) stand in its place in turn, in this checkout: run it in a clone
of its own. A mutant is killed where a test fails or takes too long. Survivors are printed as diffs. Processes, not
forks: a fork hangs after kernels ran.
"""

import argparse
import ast
import difflib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE, TESTS = ROOT / "src" / "regard", ROOT / "tests"
# Each module's own tests, and the fewest others that speak of it.
MODULES = {
    "attention/map_statistics": ["attention/test_map_statistics.py"],
    "attention/kernels/statistics": ["attention/kernels/test_statistics.py", "attention/test_map_statistics.py"],
    "attention/masks": ["attention/test_masks.py", "attention/test_attend.py"],
    "attention/ablation": ["attention/test_ablation.py"],
    "explain/causes/contributions": ["explain/causes/test_contributions.py"],
    "attention/kernels/dispatch": ["attention/kernels/test_dispatch.py", "attention/kernels/cpu/test_forward.py"],
}
LIMIT = 180.0  # seconds of one mutant's tests


def mutants(file: Path) -> list[tuple[str, Any]]:
    """(operator's name and what it does, mutated code) of every mutation of a file outside annotations."""
    from cosmic_ray.commands.init import _all_work_items
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    code = file.read_bytes()
    held = list(annotations(ast.parse(code)))
    found = []
    for item in _all_work_items([file], {}):
        (spec,) = item.mutations
        if any(first <= spec.start_pos and spec.end_pos <= last for first, last in held):
            continue
        mutated = mutate_code(code, get_operator(spec.operator_name)(**spec.operator_args), spec.occurrence)
        if mutated is not None and mutated != code.decode():
            found.append((spec.operator_name.partition("/")[2], mutated))
    return found


def annotations(tree: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations stand, as (line, column) from and to."""
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            held = getattr(node, name, None)
            if held is not None:
                yield (held.lineno, held.col_offset), (held.end_lineno, held.end_col_offset)


def survives(file: Path, mutated: str, tests: list[str]) -> bool:
    """Whether the tests pass on mutated code. The file is as before after it."""
    before = file.read_bytes()
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *(f"tests/{t}" for t in tests)]
    try:
        file.write_text(mutated, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return False
    finally:
        file.write_bytes(before)
    return done.returncode == 0


def main() -> None:
    """Try mutants, print the survivors and the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=150, help="how many mutants, of all modules together")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--module", action="append", help=f"of {', '.join(MODULES)}; by default all")
    asked = parser.parse_args()
    names = [name for name in MODULES if not asked.module or any(each in name for each in asked.module)]
    killed = tried = 0
    for name in names:
        file = SOURCE / f"{name}.py"
        found = mutants(file)
        chosen = random.Random(asked.seed).sample(found, min(len(found), asked.count // len(names)))
        dead = 0
        for operator, mutated in chosen:
            if survives(file, mutated, MODULES[name]):
                before, after = file.read_text(encoding="utf-8").splitlines(), mutated.splitlines()
                changed = [line for line in difflib.unified_diff(before, after, n=0, lineterm="") if line[:2] != "@@"]
                print(f"survived: {name}: {operator}", *changed[2:], sep="\n    ", flush=True)
            else:
                dead += 1
        print(f"{name}: {dead} of {len(chosen)} killed ({len(found)} mutants in all)", flush=True)
        killed, tried = killed + dead, tried + len(chosen)
    print(f"{killed} of {tried} mutants killed: {killed / max(1, tried):.0%}")


if __name__ == "__main__":
    main()
