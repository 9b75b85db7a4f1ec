"""What a release is: it carries the page, says the truth of itself, and runs where nothing else is."""

import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from trove_classifiers import classifiers

import regard
from regard.web import html_file
from regard.web.html_file import BUNDLES, ENDINGS
from tests import release
from tests.support import ROOT

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
    (tmp_path / "docs/lessons/drawings/__pycache__").mkdir(parents=True)
    for name in ("1_text.py", "drawings/kept.py", "drawings/__pycache__/kept.pyc"):
        (tmp_path / "docs/lessons" / name).write_text("")
    for name in FILES:
        (tmp_path / BUILT / name).write_text(name)
    return tmp_path


def test_a_wheel_carries_the_page_and_the_lessons(project: Path) -> None:
    done = wheel_of(project)
    assert done.returncode == 0, done.stderr
    with ZipFile(next((project / "dist").glob("*.whl"))) as wheel:
        carried = set(wheel.namelist())
    assert {f"regard/web/built/{name}" for name in FILES} <= carried
    lessons = {name for name in carried if name.startswith("regard/lessons/")}
    assert lessons == {"regard/lessons/1_text.py", "regard/lessons/drawings/kept.py"}


def test_without_the_page_there_is_no_wheel(project: Path) -> None:
    (project / BUILT / "widget.js").unlink()
    done = wheel_of(project)
    assert done.returncode != 0
    assert "a release carries the page, and widget.js is not built: run make page first" in done.stdout + done.stderr
    assert not list(project.glob("dist/*.whl"))


@pytest.mark.long  # 40 s: two installations, and three processes that compute
def test_wheel_and_sdist_are_whole_and_run_where_nothing_else_is(tmp_path: Path) -> None:
    pytest.importorskip("twine", reason="twine is not installed: make test installs it")
    if not (html_file.BUILT / "live.js").exists():
        pytest.skip("the page is not built: make page")
    built = release.build(tmp_path / "dist")
    there = (file for file in (ROOT / "src" / "regard").rglob("*") if file.is_file())
    sources = {file for file in there if file.parent.name != "__pycache__"}
    with ZipFile(built.wheel) as wheel:
        carried = set(wheel.namelist())
        said = wheel.read(f"regard-{regard.__version__}.dist-info/METADATA").decode("utf-8")
    assert {file.relative_to(ROOT / "src").as_posix() for file in sources} <= carried
    assert {name.split("/")[0] for name in carried} == {"regard", f"regard-{regard.__version__}.dist-info"}
    assert "# regard\n\n**See what a transformer attends to" in said
    with tarfile.open(built.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"README.md", "LICENSE", "CITATION.cff", "Makefile", "hatch_build.py", "tests/release.py"} <= names
    assert not {name for name in names if name.startswith((".venv", "out/", "dist/", "web/node_modules"))}
    (tmp_path / "elsewhere").mkdir()
    release.run_installed(built, tmp_path / "elsewhere", borrow=True)


def test_the_readme_can_be_read_elsewhere() -> None:
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))
    text = (ROOT / "README.md").read_text("utf-8")
    relative = hook["RELATIVE"]
    assert len(relative.findall(text)) > 40
    plain, linked = (hook["read_elsewhere"](text, address) for address in (None, "https://x.org/regard"))
    assert not relative.findall(plain)
    assert not re.findall(r"!\[|<img|\]\((?!https://)", plain)
    assert plain.count("](https://") == text.count("](https://") > 0
    assert not relative.findall(linked)
    assert "](https://x.org/regard/blob/main/docs/commands/see.md)" in linked
    assert "](https://x.org/regard/raw/main/docs/images/page.png)" in linked
    assert "](https://x.org/regard#which-torch)" in linked


def test_what_a_release_says_of_itself_agrees() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert project["version"] == cited["version"] == regard.__version__
    assert project["license"] == cited["license"] == "MIT"
    for page in ("README.md", "docs/index.md"):
        assert f'pip install -c constraints.txt "dist/regard-{regard.__version__}-py3-none-any.whl[minilm]"' in (
            ROOT / page
        ).read_text("utf-8")
    assert cited["authors"] == project["authors"]
    assert cited["keywords"] == project["keywords"]
    assert f"Copyright (c) 2026 {cited['authors'][0]['name']}\n" in (ROOT / "LICENSE").read_text("utf-8")
    assert set(project["classifiers"]) <= classifiers
    assert re.search(r"Python 3\.11.{0,20}torch 2\.13.{0,20}CPU", (ROOT / "docs/limits.md").read_text("utf-8"), re.S)


@pytest.mark.parametrize("name", ["tests", "docs"])
def test_workflows_may_only_read_run_what_is_pinned_and_call_what_the_pages_say(name: str) -> None:
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8")
    workflow: dict[Any, Any] = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    targets = set(re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.M))
    told = (ROOT / "README.md").read_text("utf-8") + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"])
            else:
                target = re.fullmatch(r'make ([a-z-]+) PIP_ARGS="\$PIP_ARGS"', step["run"])[1]  # type: ignore[index]
                assert target in targets
                assert f"make {target}" in told
