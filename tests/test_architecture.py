"""docs/architecture.md holds: the drawing is what runs, in its order, and the table has every package."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


FOLLOW = """
import json, pathlib, sys
import matplotlib.pyplot, numba, torch, transformers.modeling_utils  # before: following their imports takes seconds
import regard
from regard.cli.main import load_verbs, main
load_verbs(["see"])
source, called, entered = str(pathlib.Path(regard.__file__).parent), {}, set()
def follow(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(source) and code.co_flags & 1:  # a function, no module or class
        module = code.co_filename[len(source) + 1 : -3].replace("/", ".")
        called.setdefault(f"{module}.{code.co_qualname}", len(called))
        if code.co_name[0] != "<":  # no lambda or comprehension
            entered.add((module, code.co_qualname))
sys.setprofile(follow)
try:
    main(["see", "a man on a river bank", "--word", "bank"])
finally:
    sys.setprofile(None)
    pathlib.Path("called.json").write_text(json.dumps(called))
    pathlib.Path("entered.json").write_text(json.dumps(sorted(entered)))
"""
FILES, FUNCTIONS = 78, 367  # that `see` enters, the layers of its model among them: to be lowered, never raised


@pytest.mark.long  # 9 s: a profiled run
def test_the_drawing_is_what_runs(tmp_path: Path) -> None:
    drawing = PAGE.split("```text\n")[1].split("```")[0]
    drawn = re.findall(r"^[│├└─ ]*([a-z_]+(?:\.\w+)+)", drawing, re.M)
    assert len(drawn) >= 12
    subprocess.run([sys.executable, "-c", FOLLOW], cwd=tmp_path, check=True, capture_output=True)
    called = json.loads((tmp_path / "called.json").read_text())
    assert [name for name in drawn if name not in called] == []
    assert sorted(drawn, key=called.__getitem__) == drawn
    entered = json.loads((tmp_path / "entered.json").read_text())
    assert len({module for module, _ in entered}) <= FILES
    assert len(entered) <= FUNCTIONS


def test_the_table_has_every_room_in_the_order_of_imports() -> None:
    rows = re.findall(r"^\| (`.+?) \|", PAGE.split("## Packages")[1].split("\n## ")[0], re.M)
    rooms = [room for row in rows for room in re.findall(r"`([\w.]+)`", row) if "." not in room]
    source = ROOT / "src" / "regard"
    there = {
        each.name.removesuffix(".py")
        for each in source.iterdir()
        if each.suffix == ".py" or (each / "__init__.py").exists()
    }
    assert set(rooms) == there - {"__init__", "__main__"}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [each.removeprefix("regard.") for layer in contracts[0]["layers"] for each in re.split(r" [|:] ", layer)]
    assert set(layers) == set(rooms)
    place = {room: n for n, room in enumerate(reversed(rooms))}
    levels = [
        [place[each.removeprefix("regard.")] for each in re.split(r" [|:] ", layer)] for layer in contracts[0]["layers"]
    ]
    assert all(max(above) < min(below) for above, below in pairwise(levels))


LARGEST_CYCLE, IN_FUNCTIONS = 4, 39  # files that import each other, and imports in functions: only lowered


def test_imports_go_one_way_with_types_and_functions_counted() -> None:
    source, inside = ROOT / "src", 0
    files = {".".join(file.relative_to(source).with_suffix("").parts): file for file in source.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): file for name, file in files.items()}
    imports: dict[str, set[str]] = {}
    for name, file in modules.items():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        named: dict[ast.stmt, list[str]] = {}  # what each import statement imports
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named[node] = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                both = [(f"{node.module}.{alias.name}", str(node.module)) for alias in node.names]
                named[node] = [module if module in modules else package for module, package in both]
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        within = {node for function in functions for node in ast.walk(function)}
        inside += sum(module in modules for node, names in named.items() if node in within for module in names)
        imports[name] = {module for names in named.values() for module in names if module in modules} - {name, "regard"}

    def reached(start: str) -> set[str]:
        result, waiting = set[str](), [start]
        while waiting:
            new = imports[waiting.pop()] - result
            result |= new
            waiting += new
        return result

    below = {name: reached(name) for name in imports if name != "regard"}
    cycles = {name: sum(name in below[other] for other in others) for name, others in below.items() if name in others}
    assert max(cycles.values()) <= LARGEST_CYCLE, sorted(cycles)
    assert inside <= IN_FUNCTIONS
