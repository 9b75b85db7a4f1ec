"""Write a page as one HTML file that works offline by double click; without JavaScript it has its sentences alone.

The file carries the program that has its views, and not much more: `make page` makes the programs and their style
sheets of web/, and every release has them.

Its Content-Security-Policy lets it load nothing and run no script but its own, known by its SHA-256. Data stands in
script elements of types that no browser runs: JSON in which `<`, `>` and `&` are written as \\uXXXX, so that no text
can end the element, and numbers in base64. Several pages can be joined in one file.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from regard.errors import RegardError
from regard.files import read_regular, whole
from regard.text.quoting import text_with_control_pictures
from regard.trace.trace import PairTrace, Trace
from regard.web.assemble import LIMIT, Choice, Opening, check_page_size, page_of
from regard.web.numbers import Data
from regard.web.page import HasPage, Page

BUILT = Path(__file__).parent / "built"
BUNDLES = {  # what each program of a page in a file can show, the smallest first: web/src/bundles
    "panels": {"numbers"},
    "weights": {"numbers", "weights", "texts", "image"},
    "paths": {"paths", "weights", "texts"},
    "page": {"numbers", "paths", "weights", "texts", "image", "pair", "writing"},
}
ENDINGS = ("js", "css")


@dataclass(frozen=True)
class Shell:
    """The common parts of pages of a kind: the program and the style sheet."""

    script: str
    style: str = ""


def bundle_of(page: Page) -> str:
    """Name the smallest bundle that shows all that a page has."""
    shown = {"paths" if panel["kind"] == "paths" else "numbers" for panel in page.panels}
    shown |= {"weights"} if page.calls or any(panel.get("over") for panel in page.panels) else set()  # with the slider
    shown |= {str(page.overview["kind"])} if page.overview else set()
    return next(name for name, has in BUNDLES.items() if shown <= has)


def built_program(name: str) -> Shell:
    """Read a program: one of BUNDLES, "widget" for a notebook or "live" for `regard serve`. Raises if none is."""
    check_page_built((name,))
    script, style = (read_regular(BUILT / f"{name}.{ending}").decode() for ending in ENDINGS)
    return Shell(script, style)


def check_page_built(programs: Iterable[str] = BUNDLES) -> None:
    """Raise RegardError if one of some programs isn't built."""
    files = (f"{name}.{ending}" for name in programs for ending in ENDINGS)
    missing = next((name for name in files if not (BUILT / name).is_file()), None)
    if missing:
        raise RegardError(
            f"the page is not built: run make page ({missing} is not there; a release has it, in a checkout it "
            "is made once, with a Node of Python's package index)"
        )


def write_page(page: Page, file: Path, limit: int | None = LIMIT, shell: Shell | None = None) -> int:
    """Write a page; returns the file's size in bytes. Raises RegardError if its numbers take more bytes than limit."""
    check_page_size(page.numbers.size, limit)
    with whole(file) as temporary, temporary.open("wb") as written:
        for part in html_parts(page, shell):
            written.write(part)
        return written.tell()


def html_parts(page: Page, shell: Shell | None = None) -> Iterator[bytes]:
    """Make the file's bytes, part by part: numbers may be many. shell: by default the built one."""
    data, shell = page.data(), shell or built_program(bundle_of(page))
    if "</style" in shell.style.lower():
        raise RegardError("the built page's style sheet holds </style, which would end its element: build it again")
    title, findings = readable(str(data["title"])), "".join(f"<p>{readable(each)}</p>\n" for each in page.findings)
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(html_security_policy(shell))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} · regard</title>\n<style>{shell.style}</style>\n</head>\n"
        # for those without JavaScript: the program takes this away
        f'<body>\n<div id="regard-page">\n<noscript><h1>{title}</h1>\n'
        f"<p>This page needs JavaScript.</p>\n{findings}</noscript>\n</div>\n"
    )
    yield head.encode("utf-8", "replace")
    yield f'<script type="application/json" id="regard-data">{script_json(data)}</script>\n'.encode("ascii")
    opened = int(str(page.opening["call"]))
    first_view = [page.calls[opened : opened + 1], [call.get("small") for call in page.calls]]
    first = {int(at) for at in re.findall(r'"at": (\d+)', json.dumps(first_view))}
    others = [at for at in range(len(page.numbers.blobs)) if at not in first]
    yield from _number_scripts(page, sorted(first))
    yield f"<script>{script_text(shell)}</script>\n".encode()  # which shows them while a browser reads the others
    yield from _number_scripts(page, others)
    yield b"</body>\n</html>\n"


def _number_scripts(page: Page, numbers: Sequence[int]) -> Iterator[bytes]:
    for at in numbers:
        text = base64.b64encode(page.numbers.blobs[at])
        yield b'<script type="text/plain" id="numbers-%d">%b</script>\n' % (at, text)


def script_json(data: Data) -> str:
    """Write data as JSON that may be in a script element: in ASCII, without `<`, `>` and `&`."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def script_text(shell: Shell) -> str:
    """The program as it is in its element: what HTML would read as a comment or an end is spelled otherwise.

    Both occur in its strings alone, where \\x3C is the same character.
    """
    return re.sub(r"<(?=!--|/?script)", r"\\x3C", shell.script, flags=re.IGNORECASE)


def html_security_policy(shell: Shell) -> str:
    """The file's Content-Security-Policy: nothing from outside, and its own script alone."""
    digest = base64.b64encode(hashlib.sha256(script_text(shell).encode()).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "worker-src blob:; base-uri 'none'; form-action 'none'"
    )


def readable(text: str) -> str:
    """A text as HTML shows it: escaped, control characters as their pictures."""
    return escape(text_with_control_pictures(text).replace("\r", "\u240d"))


def join_pages_into_one(pages: Sequence[Page]) -> Page:
    """One page of several: their sentences one after another, and a tab for each panel."""
    if len(pages) == 1:
        return pages[0]
    page = Page(f"{pages[0].title} (and {len(pages) - 1} more)")
    page.opening["view"] = "panel 0"
    add_panels(page, pages)
    return page


def page_beside(found: HasPage, traces: Sequence[Trace | PairTrace], choice: Choice, opening: Opening) -> Page:
    """Put together the page of an answer with the attention of its texts, as `page_of`, which opens at the answer."""
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
