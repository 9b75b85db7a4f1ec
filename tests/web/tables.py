"""Read the tables that stand beside the pictures of the page."""

import json
from typing import Any


def rows_of(tab: Any, caption: str, *, exact: bool = False) -> list[list[str]]:
    """The cells of a table, in its order, all of its rows. exact: numbers with the decimals of their tooltips."""
    region = tab.locator(f"[role=region][aria-label={json.dumps(caption, ensure_ascii=False)}]")
    region.wait_for()
    more = region.locator("xpath=following-sibling::*[1]").locator("button:has-text('all ')")
    if more.count():
        more.click()
    read: list[list[str]] = region.locator("tbody").evaluate(
        "(body, exact) => [...body.rows].map(({ cells }) => [...cells].map("
        "cell => (exact && cell.title) || cell.innerText.trim()))",
        exact,
    )
    return read


def total_of(tab: Any, caption: str) -> list[str]:
    """The cells of a table's row of all, which is shown without a click."""
    region = tab.locator(f"[role=region][aria-label={json.dumps(caption, ensure_ascii=False)}]")
    cells: list[str] = region.locator("tfoot tr").last.locator("th, td").all_inner_texts()
    return [cell.strip() for cell in cells]


def by_number(rows: list[list[str]], number: int, column: int) -> dict[int, float]:
    """The numbers of one column by those of another."""
    return {int(row[number]): read_number(row[column]) for row in rows}


def read_number(text: str) -> float:
    """A number as the page wrote it; of "<0.01" and ">0.99" the middle of what reads so."""
    plain = text.replace("−", "-").replace("∞", "inf")
    if plain[0] not in "<>":
        return float(plain)
    end, least = float(plain[1:]), 10.0 ** -len(plain.partition(".")[2])
    return end / 4 if abs(end) == least else end + (least if end > 0 else -least) * 0.75


def open_twin(tab: Any, summary: str = "The numbers as a table") -> None:
    """Open the table beside a picture."""
    tab.click(f"summary:text-is('{summary}')")
