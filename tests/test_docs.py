"""The Python code of every page runs as printed: its blocks in order, with nothing but what the page defines."""

import re
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from regard.model_files.folder import default_folder
from tests.support import ROOT
from tests.support.pages import EVERY, code_blocks, pages

DOCS = ROOT / "docs"
RUN = [*DOCS.glob("*.py"), *DOCS.glob("lessons/[0-9]*_*.py"), *DOCS.glob("articles/*.py")]
COLUMNS = [*EVERY, ROOT / "CONTRIBUTING.md", *sorted(RUN)]
DOORS = ["Get started", "Learn", "Guides", "Command line", "Python API", "Benchmarks and limits"]


def files(entries: Any) -> list[str]:
    """The pages below an entry of the navigation, in order."""
    if isinstance(entries, str):
        return [entries]
    return [file for entry in (entries.values() if isinstance(entries, dict) else entries) for file in files(entry)]


def test_doors_lead_to_every_page_once() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    assert [name for door in navigation for name in door] == DOORS
    for door, name in zip(navigation, DOORS, strict=True):
        assert door[name][0] == {"Overview": f"{name.lower().replace(' ', '_')}.md"}
        assert len(files(door)) <= 27  # a screen's height of links
    every = [*DOCS.rglob("*.md"), *RUN]
    assert sorted([*files(navigation), "index.md"]) == sorted(page.relative_to(DOCS).as_posix() for page in every)


def test_a_commands_page_begins_with_one_command_and_what_it_prints() -> None:
    """That it prints this is held by test_docs_commands.py, but for a server, a pipeline and downloads."""
    for page in sorted((ROOT / "docs" / "commands").glob("*.md")):
        blocks = re.findall(r"^```(\w+)\n(.*?)^```\n", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        (language, command), (plain, output) = blocks[:2]
        assert language == ("text" if page.stem in ("paint", "serve", "fetch") else "sh"), page
        assert re.findall(r"^regard (\w+)", command, re.MULTILINE) == [page.stem]
        assert plain == "text", page
        assert 1 <= len(output.splitlines()) <= 22, page
        assert not output.startswith("regard "), page
    asked = code_blocks("docs/commands/serve.md", "text")[1].splitlines()[0]
    assert asked in (ROOT / "src" / "regard" / "server" / "verb.py").read_text("utf-8")


@pytest.mark.parametrize("page", COLUMNS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_and_outputs_stand_in_80_columns(page: Path) -> None:
    """What runs while the documentation is built prints as wide as its tables are: that alone is not held here."""
    text = page.read_text("utf-8")
    if page.suffix == ".md":
        blocks = re.findall(r"^ *(```+)[^\n]*\n(.*?)^ *\1", text, re.DOTALL | re.MULTILINE)
        lines = [line for _, block in blocks for line in block.splitlines()]
    else:
        cells = re.split(r"^# %%", text, flags=re.MULTILINE)
        lines = [line for cell in cells if not cell.startswith(" [markdown]") for line in cell.splitlines()]
    assert [line for line in lines if len(line) > 80] == []


def test_no_code_is_missed() -> None:
    languages = {name for page in EVERY for name in re.findall(r"^ *```+ *(\S+)", page.read_text("utf-8"), re.M)}
    assert languages == {"python", "sh", "text", "toml"}  # this test runs the first, test_docs_commands.py the second
    assert {"README.md", "docs/attention.md", "docs/generation.md"} <= set(pages("python"))
    assert {"README.md", "docs/training.md", "docs/commands/see.md"} <= set(pages("sh"))


@pytest.mark.parametrize(
    "page", [page if page == "README.md" else pytest.param(page, marks=pytest.mark.long) for page in pages("python")]
)
def test_code_blocks_run(page: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in code_blocks(page, "python"):
        if "import lightning" in block:
            if find_spec("lightning") is None:
                continue
            warnings.simplefilter("ignore")  # its own
        # the default model, a BERT, stands in for a model of the hub
        exec(compile(block.replace('"bert-base-uncased"', repr(str(default_folder()))), page, "exec"), names)
    if page == "docs/training_loops.md":
        assert names["steps"] == [0, 10, 20]
    if page == "README.md":
        assert names["trace"].attention[5][7].shape == (9, 9)
        assert names["trace"].hidden_states[6].shape == (9, 384)
        assert names["result"].weights[0, 3, 4000:4010, :].shape == (10, 5000)
