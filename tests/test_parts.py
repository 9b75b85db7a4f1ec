"""Optional parts of regard can be taken out: the rest works, and says in one line what is missing."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regard.lazy import PARTS
from tests.support import ROOT

CORE = {"tests/attention/test_attend.py", "tests/test_shown.py", "tests/text/test_words.py"}
MISSING = {  # what asks for each part
    "regard.corpus": ["find", "bank", "--store", "x"],
    "regard.course": ["lesson"],
    "regard.diffusion": ["paint", "x", "a cat"],
    "regard.gguf": ["see", "a", "--word", "a", "--model", "x.gguf"],
    "regard.server": ["serve"],
    "regard.train": ["train", "x.txt"],
    "regard.verify": ["check"],
    "regard.vision": ["see", "--image", "x.png", "--model", "x"],
}


def imports(file: Path) -> set[str]:
    """The modules that a file imports, also in functions and for types alone."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    of = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return plain | {f"{node.module}.{name.name}" for node in of for name in node.names}


def test_the_core_imports_no_part_not_even_for_types() -> None:
    source = ROOT / "src" / "regard"
    parts = [source / part.removeprefix("regard.") for part in PARTS]
    assert all(part.is_dir() for part in parts)
    core = [file for file in source.glob("*/**/*.py") if not any(file.is_relative_to(part) for part in parts)]
    wrong = {(file.name, name) for file in core for name in imports(file) if name.startswith(PARTS)}
    assert not wrong
    assert set(MISSING) == set(PARTS)


@pytest.mark.long  # 15 s each: three processes
@pytest.mark.parametrize("part", PARTS)
def test_a_copy_without_a_part_works(part: str, tmp_path: Path) -> None:
    copied = tmp_path / "regard"
    shutil.copytree(ROOT / "src" / "regard", copied, ignore=shutil.ignore_patterns("__pycache__", "built"))
    shutil.rmtree(copied / part.removeprefix("regard."))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}

    def run(*call: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", *call], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    seen = run("regard", "see", "a man on a river bank", "--word", "bank")
    assert (seen.returncode, seen.stderr) == (0, "")
    lacking = run("regard", *MISSING[part])
    said = f"regard: error: {part} isn't installed: this copy of regard lacks that part\n"
    assert (lacking.returncode, lacking.stderr) == (2, said)
    tested = run("pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *(str(ROOT / file) for file in CORE))
    assert tested.returncode == 0, tested.stdout
