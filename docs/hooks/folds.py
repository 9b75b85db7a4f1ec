"""Fold long pages while the site is built: what a page begins with is a screen's height, the rest opens when asked for.

Every section of a folded page is a `<details>` under its own heading, and a table of many rows is one in any page. They
need no script: `docs/tables.js` adds a field that finds rows.
"""

import re
from typing import Any

FOLDED = {"accuracy.md", "faithfulness.md", "families_table.md", "movement.md", "score_families.md"}
LONG = 40  # rows of a table, from which on it is folded
SECTION = re.compile(r"(?=<h2\b)")
HEADING = re.compile(r"<h2\b.*?</h2>", re.DOTALL)
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)


def folded(page: str) -> str:
    """Put each section below its heading into a `<details>` that the heading opens."""
    head, *sections = SECTION.split(page)
    return head + "".join(_folded(section) for section in sections)


def _folded(section: str) -> str:
    heading = HEADING.match(section)
    assert heading is not None
    text = section[heading.end() :]
    return f'<details class="fold"><summary>{heading[0]}</summary>{text}</details>\n'


def long_tables(page: str) -> str:
    """Fold each table of many rows, and say how many they are."""
    return TABLE.sub(_long_table, page)


def _long_table(found: re.Match[str]) -> str:
    rows = found[0].count("<tr>") - 1
    if rows < LONG:
        return found[0]
    return f'<details class="rows"><summary>All {rows:,} rows</summary>\n{found[0]}\n</details>'


def on_page_content(page_html: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the content of each page."""
    if page.file.src_uri.endswith(".py"):
        return page_html
    shown = long_tables(page_html)
    return folded(shown) if page.file.src_uri in FOLDED else shown
