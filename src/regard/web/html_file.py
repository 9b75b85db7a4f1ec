"""Write a page as a single HTML file that opens offline. Without JavaScript it shows only its sentences.

The file contains the smallest program that has its views. `make page` builds the programs and their style sheets from
web/, and every release includes them.

Its Content-Security-Policy lets it load nothing and run only its own script, identified by SHA-256. Data is in script
elements of types that browsers don't run. Numbers are in base64. In JSON, `<`, `>` and `&` are escaped as \\uXXXX, so
that no text can end the element. Several pages can be joined in one file.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from regard.errors import RegardError
from regard.files import read_regular, whole
from regard.text.quoting import text_with_control_pictures
from regard.trace.trace import PairTrace, Trace
from regard.web.assemble import LIMIT, Choice, check_page_size, page_of
from regard.web.numbers import Data
from regard.web.page import HasPage, Page

BUILT = Path(__file__).parent / "built"
BUNDLES = {  # the views that each page program has, smallest program first: web/src/bundles
    "panels": {"numbers"},
    "weights": {"numbers", "weights", "texts", "image"},
    "paths": {"paths", "weights", "texts"},
    "page": {"numbers", "paths", "weights", "texts", "image", "pair", "writing"},
}
ENDINGS = ("js", "css")


def bundle_of(page: Page) -> str:
    """Return the name of the smallest program in `BUNDLES` that has all views of a page."""
    shown = {"paths" if panel["kind"] == "paths" else "numbers" for panel in page.panels}
    shown |= {"weights"} if page.calls or any(panel.get("over") for panel in page.panels) else set()  # for a slider
    shown |= {str(page.overview["kind"])} if page.overview else set()
    return next(name for name, has in BUNDLES.items() if shown <= has)


def built_program(name: str) -> tuple[str, str]:
    """Read a built JavaScript program and its style sheet. Raises RegardError if it isn't built.

    name: one of BUNDLES, "widget" (notebook) or "live" (`regard serve`).
    """
    check_page_built((name,))
    script, style = (read_regular(BUILT / f"{name}.{ending}").decode() for ending in ENDINGS)
    return script, style


def check_page_built(programs: Iterable[str] = BUNDLES) -> None:
    """Raise RegardError if one of the page's programs isn't built."""
    files = (f"{name}.{ending}" for name in programs for ending in ENDINGS)
    missing = next((name for name in files if not (BUILT / name).is_file()), None)
    if missing:
        raise RegardError(
            f"the page is not built: run make page ({missing} is not there; a release has it, in a checkout it "
            "is made once, with a Node of Python's package index)"
        )


def write_page(page: Page, file: Path, limit: int | None = LIMIT) -> int:
    """Write a page to an HTML file. Returns its size in bytes. Raises RegardError if its numbers exceed the limit."""
    check_page_size(page.numbers.size, limit)
    with whole(file) as temporary, temporary.open("wb") as opened:
        opened.writelines(html_parts(page))
        return opened.tell()


def html_parts(page: Page) -> Iterator[bytes]:
    """Yield the bytes of a page's HTML file in parts, as they may be large."""
    data, (script, style) = page.data(), built_program(bundle_of(page))
    if "</style" in style.lower():
        raise RegardError("the built page's style sheet holds </style, which would end its element: build it again")
    title, findings = readable(str(data["title"])), "".join(f"<p>{readable(text)}</p>\n" for text in page.findings)
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(html_security_policy(script))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} · regard</title>\n<style>{style}</style>\n</head>\n"
        # for browsers without JavaScript; the program removes it
        f'<body>\n<div id="regard-page">\n<noscript><h1>{title}</h1>\n'
        f"<p>This page needs JavaScript.</p>\n{findings}</noscript>\n</div>\n"
    )
    yield head.encode("utf-8", "replace")
    yield f'<script type="application/json" id="regard-data">{script_json(data)}</script>\n'.encode("ascii")
    call = int(str(page.opening["call"]))
    first_view = [page.calls[call : call + 1], [call.get("small") for call in page.calls]]
    first = {int(at) for at in re.findall(r'"at": (\d+)', json.dumps(first_view))}
    others = [at for at in range(len(page.numbers.blobs)) if at not in first]
    yield from _number_scripts(page, sorted(first))
    yield f"<script>{script_text(script)}</script>\n".encode()  # shows the first view while the rest loads
    yield from _number_scripts(page, others)
    yield b"</body>\n</html>\n"


def _number_scripts(page: Page, numbers: Sequence[int]) -> Iterator[bytes]:
    """Yield the script elements of a page's arrays, in base64. numbers: the indices of the arrays."""
    for at in numbers:
        text = base64.b64encode(page.numbers.blobs[at])
        yield b'<script type="text/plain" id="numbers-%d">%b</script>\n' % (at, text)


def script_json(data: Data) -> str:
    """Return data as ASCII JSON without `<`, `>` and `&`, which is safe in a script element."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def script_text(script: str) -> str:
    """Return a program as text for a script element: `<` before `!--`, `script` and `/script` becomes \\x3C.

    HTML would see a comment or tag there. They occur only in strings, where \\x3C is the same character.
    """
    return re.sub(r"<(?=!--|/?script)", r"\\x3C", script, flags=re.IGNORECASE)


def html_security_policy(script: str) -> str:
    """Return the file's Content-Security-Policy, which forbids loading anything and running other scripts."""
    digest = base64.b64encode(hashlib.sha256(script_text(script).encode()).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "worker-src blob:; base-uri 'none'; form-action 'none'"
    )


def readable(text: str) -> str:
    """Escape a text for HTML, with Unicode's symbols for control characters."""
    return escape(text_with_control_pictures(text).replace("\r", "\u240d"))


def join_pages_into_one(pages: Sequence[Page]) -> Page:
    """Join several pages into one, with all their sentences and a tab for each of their panels."""
    if len(pages) == 1:
        return pages[0]
    page = Page(f"{pages[0].title} (and {len(pages) - 1} more)")
    page.opening["view"] = "panel 0"
    add_panels(page, pages)
    return page


def page_beside(answer: HasPage, traces: Sequence[Trace | PairTrace], choice: Choice) -> Page:
    """Build a page with an answer's panels and the attention of its texts (`page_of`). It opens at the answer."""
    of_answer = answer.page()
    page = page_of(traces, choice, title=of_answer.title, findings=of_answer.findings)
    page.opening["view"] = f"panel {len(page.panels)}"
    add_panels(page, [of_answer], sentences=False)
    return page


def add_panels(page: Page, others: Sequence[Page], *, sentences: bool = True) -> None:
    """Add the panels, status and sentences of other pages to a page, and number panels with equal names.

    The sentences of each page begin with its title, so that their subject is clear.
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
