"""Run the lessons quietly, fit what nbconvert makes of them into the site: nothing from elsewhere, links, tables."""

import os
import re
from typing import Any

from mkdocs.exceptions import PluginError

SCRIPTS = re.compile(r"<!-- Load mathjax -->.*?<!-- End of mermaid configuration -->", re.DOTALL)
LINK = re.compile(r'(<a href="(?!painter\.)[^":#]+)\.(?:py|md)(?=["#])')  # to another lesson's file, or to a page's

# nbconvert folds long lines of what was printed; a table that is folded cannot be read down
STYLE = "<style>.jp-OutputArea-output pre { white-space: pre !important; overflow-x: auto; }</style>"


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


def on_page_content(page_html: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the content of each page."""
    return STYLE + linked(without_scripts(page_html)) if page.file.src_uri.endswith(".py") else page_html
