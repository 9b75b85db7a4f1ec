"""Write a page that was put together, and join pages: several in one, or an answer with the attention of its texts."""

from collections.abc import Sequence
from pathlib import Path

from regard.trace.trace import PairTrace, Trace
from regard.web.assemble import Choice, Opening, page_of
from regard.web.built_page import built_shell
from regard.web.html_file import write_html
from regard.web.page import HasPage, Page
from regard.web.sizes import LIMIT, check_page_size


def write_page(page: Page, file: Path, limit: int | None = LIMIT) -> int:
    """Write a page that was put together; returns the file's size in bytes. Raises RegardError over the limit.

    Args:
        page: what is written.
        file: its ending is .html.
        limit: the most bytes of its numbers, None for any.
    """
    check_page_size(page.numbers.size, limit)
    return write_html(page, file, built_shell(page))


def join_pages_into_one(pages: Sequence[Page]) -> Page:
    """One page of several: their sentences one after another, and a tab for each panel."""
    if len(pages) == 1:
        return pages[0]
    page = Page(f"{pages[0].title} (and {len(pages) - 1} more)")
    page.opening["view"] = "panel 0"
    add_panels(page, pages)
    return page


def page_beside(found: HasPage, traces: Sequence[Trace | PairTrace], choice: Choice, opening: Opening) -> Page:
    """Put together the page of an answer with the attention of its texts, which opens at the answer.

    Raises RegardError for what `page_of` raises.

    choice, opening: as of `page_of`.
    """
    own = found.page()
    page = page_of(traces, choice, opening, title=own.title, findings=own.findings)
    page.opening["view"] = f"panel {len(page.panels)}"
    add_panels(page, [own], sentences=False)
    return page


def add_panels(page: Page, others: Sequence[Page], *, sentences: bool = True) -> None:
    """Add to a page what others show, and say; of panels with one name the later ones have a number behind it.

    The sentences of each begin with its title, so that one sees what they are about.
    """
    for other in others:
        if sentences:
            first, *rest = other.findings or ("",)
            page.findings = [*page.findings, f"{other.title}. {first}".strip(), *rest]
        page.status = list(dict.fromkeys([*page.status, *other.status]))
        page.panels += other.panels
    seen: dict[str, int] = {}
    for panel in page.panels:
        name = str(panel["name"])
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            panel["name"] = f"{name} ({seen[name]})"
