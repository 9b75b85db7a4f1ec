"""What a release carries: the built page, or there is no release."""

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from regard.web.built_page import BUNDLES, ENDINGS

ROOT = Path(__file__).parents[1]
BUILT = Path("src/regard/web/built")
FILES = tuple(f"{name}.{ending}" for name in (*BUNDLES, "widget", "live") for ending in ENDINGS)


def wheel_of(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what a wheel is made of, with a page of one line a file."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / BUILT).mkdir(parents=True)
    (tmp_path / "src/regard/__init__.py").write_text("")
    for name in FILES:
        (tmp_path / BUILT / name).write_text(name)
    return tmp_path


def test_a_wheel_carries_the_page(project: Path) -> None:
    done = wheel_of(project)
    assert done.returncode == 0, done.stderr
    with ZipFile(next((project / "dist").glob("*.whl"))) as wheel:
        assert {f"regard/web/built/{name}" for name in FILES} <= set(wheel.namelist())


def test_without_the_page_there_is_no_wheel(project: Path) -> None:
    (project / BUILT / "widget.js").unlink()
    done = wheel_of(project)
    assert done.returncode != 0
    assert "a release carries the page, and widget.js is not built: run make page first" in done.stdout + done.stderr
    assert not list(project.glob("dist/*.whl"))
