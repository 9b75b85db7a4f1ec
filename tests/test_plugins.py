"""Questions and kinds of models of other packages: installed as one would be, found, and left out if broken."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.models.kinds import kinds
from regard.plugins import OURS, QUESTIONS, others, ours
from tests.support import ROOT

PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of docs/plugins.md, installed in a folder with a second, broken plug-in."""
    folder = tmp_path_factory.mktemp("packages")
    code, made = re.findall(r"```python\n(.*?)```", PAGE, re.S), folder / "regard_commas"
    made.mkdir()
    for name, text in zip(("__init__", "query", "answer", "fresh"), ("", *code), strict=True):
        (made / f"{name}.py").write_text(text, encoding="utf-8")
    declared = "\n".join(re.findall(r"```toml\n(.*?)```", PAGE, re.S)).replace("project.entry-points.", "")
    declared = declared.replace('"', "").replace("\n\n", "\nbroken = regard_commas.query:nothing\n\n", 1)
    installed = folder / "regard_commas-1.dist-info"
    installed.mkdir()
    (installed / "entry_points.txt").write_text(declared, encoding="utf-8")
    (installed / "METADATA").write_text("Name: regard_commas\nVersion: 1\n", encoding="utf-8")
    return folder


def run(package: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(package)])}
    call = [sys.executable, "-m", "regard", *arguments]
    return subprocess.run(call, cwd=package, env=environment, capture_output=True, text=True, check=False)


def test_pyproject_declares_what_regard_finds_without_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {group: list(names.items()) for group, names in project["entry-points"].items()} == {
        group: list(names.items()) for group, names in OURS.items()
    }
    assert all(set(ours(group)) == set(names) for group, names in OURS.items())


@pytest.mark.long  # 10 s: two processes
def test_a_question_of_another_package_has_a_command_and_all_its_files(package: Path) -> None:
    listed = run(package, "--help")
    assert re.search(r"From other packages:\n  commas +Show the attention that each comma receives.\n", listed.stdout)
    assert listed.stderr.count("\n") == 1
    assert "'broken' (regard_commas.query:nothing) is left out of regard.questions: AttributeError" in listed.stderr
    files = ("--json", "c.json", "--html", "c.html", "--figure", "c.png", "--csv", "c.csv")
    done = run(package, "commas", "Red, green, blue.", "--least", "0.01", *files)
    assert done.returncode == 0, done.stderr
    first = json.loads((package / "c.json").read_text())["commas"][0]
    said = f"The comma at position {first['position']} of text 1 receives the most attention"
    assert said in " ".join(done.stdout.split())
    assert all((package / file).stat().st_size for file in files[1::2])


def test_a_kind_of_model_and_a_request_of_another_package_are_found(
    package: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fastapi", reason="the extra web is not installed")
    from regard.server.requests import _request_of

    monkeypatch.syspath_prepend(package)
    kinds.cache_clear()
    assert regard.load("fresh:3").model.config.layers == 3
    kinds.cache_clear()
    requests = others(QUESTIONS, _request_of)
    assert capsys.readouterr().err.count("\n") == 1
    asked: Any = requests["commas"]
    made = asked(kind="commas", texts=["a, b"], asked={"least": 0.5}).question()
    assert (made.check(1), made.least) == (None, 0.5)
