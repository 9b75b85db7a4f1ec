"""Run the lessons quietly, fit what nbconvert makes of them into the site, and put a notebook beside each page."""

import os
import re
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from mkdocs.exceptions import PluginError

SCRIPTS = re.compile(r"<!-- Load mathjax -->.*?<!-- End of mermaid configuration -->", re.DOTALL)
LINK = re.compile(r'(<a href="(?!painter\.)[^":#]+)\.(?:py|md)(?=["#])')  # to another lesson's file, or to a page's

# nbconvert folds long lines of what was printed; a table that is folded cannot be read down
STYLE = "<style>.jp-OutputArea-output pre { white-space: pre !important; overflow-x: auto; }</style>"

# the first cell of a notebook, which may be opened in any folder
SET_UP = """# The drawings lie beside regard's lessons.
import sys

from regard.course.lesson import lesson_files

sys.path.append(str(lesson_files()[0].parent))"""
OTHER_PAGE = re.compile(r"\[([^]]+)\]\((?!https?:)[^)]+\)")


def on_startup(**_: Any) -> None:
    """Called by mkdocs once: what the lessons' processes find in their environment."""
    # tqdm warns in notebooks without ipywidgets, with a path of this machine; no page shows a progress bar
    quiet = "ignore:IProgress not found"
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), quiet]))
    drawings = os.path.join(
        os.getcwd(), "docs", "lessons"
    )  # a script finds what lies beside it, a notebook here does not
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [drawings, os.environ.get("PYTHONPATH")]))
    os.environ.setdefault("REGARD_OUT", os.path.join(os.getcwd(), "out", "lessons"))


def without_scripts(page: str) -> str:
    """Leave out MathJax, whose formulas are MathML here, and Mermaid, which no lesson draws.

    Raises:
        PluginError: they are not where nbconvert puts them.
    """
    left, count = SCRIPTS.subn("", page)
    if count != 1:
        raise PluginError(f"MathJax and Mermaid are {count} times in the page, once was expected: see docs/hooks")
    return left


def linked(page: str) -> str:
    """Turn links to the files of lessons and pages, which hold in the sources, to what is built of them."""
    return LINK.sub(r"\1.html", page)


def notebook(source: Path) -> nbformat.NotebookNode:
    """Read a lesson as a notebook: its cells after one that finds the drawings, links to other pages as plain words."""
    made = jupytext.read(source)
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = OTHER_PAGE.sub(r"\1", cell.source)
    made.cells.insert(1, nbformat.v4.new_code_cell(SET_UP))
    made.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return made


def on_page_content(page_html: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the content of each page."""
    if not page.file.src_uri.endswith(".py"):
        return page_html
    name = Path(page.file.src_uri).with_suffix(".ipynb").name
    return f'{STYLE}<a class="md-button" href="{name}" download>Open as notebook</a>\n' + linked(
        without_scripts(page_html)
    )


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with each whole page: its notebook is written beside it."""
    if page.file.src_uri.endswith(".py"):
        file = Path(page.file.abs_dest_path).with_suffix(".ipynb")
        file.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook(Path(page.file.abs_src_path)), file)
    return output
