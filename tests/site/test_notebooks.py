"""The notebook beside each page: the cells of the page's file, and one before them that finds the drawings."""

from pathlib import Path

import pytest

from tests.site.test_pages import ARTICLES, PICTURES, SITE, Page, pytestmark
from tests.support import ROOT

jupytext = pytest.importorskip("jupytext", reason="needs the docs extra")
nbclient = pytest.importorskip("nbclient", reason="needs the docs extra")
nbformat = pytest.importorskip("nbformat", reason="needs the docs extra")
__all__ = ["pytestmark"]


@pytest.mark.parametrize("name", [*(f"lessons/{stem}" for stem in PICTURES), *ARTICLES, "five_lines"])
def test_a_page_opens_as_a_notebook_of_its_cells(name: str) -> None:
    links = [given["href"] for tag, given in Page(f"{name}.html").elements if tag == "a" and "download" in given]
    assert links == [f"{Path(name).name}.ipynb"]
    made, source = nbformat.read(SITE / f"{name}.ipynb", 4), jupytext.read(ROOT / "docs" / f"{name}.py")
    first, *others = [cell.source for cell in made.cells if cell.cell_type == "code"]
    assert "sys.path" in first
    assert others == [cell.source for cell in source.cells if cell.cell_type == "code"]
    text = "".join(cell.source.replace("](http", "") for cell in made.cells if cell.cell_type == "markdown")
    assert "](" not in text  # no link to a file that is not there


def test_a_notebook_runs_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    made = nbformat.read(SITE / "lessons/5_queries_keys_values.ipynb", 4)
    nbclient.NotebookClient(made, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any(
        "<img" in output.get("data", {}).get("text/html", "")
        for cell in made.cells
        for output in cell.get("outputs", [])
    )
