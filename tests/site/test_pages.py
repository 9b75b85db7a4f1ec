"""The built site, read as it will be seen: formulas, pictures, what was printed, and nothing from elsewhere.

`make docs` builds it and runs this; REGARD_SITE names the folder.
"""

import base64
import os
import re
import struct
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support import ROOT

SITE = Path(os.environ.get("REGARD_SITE", ROOT / "none"))
pytestmark = [
    pytest.mark.docs,
    pytest.mark.skipif("REGARD_SITE" not in os.environ, reason="no built site (make docs builds it and runs this)"),
]
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html")) or ["(none)"]
PICTURES = {  # of each walkthrough, in order: width and height in pixels
    "formula": [(1080, 490), (1210, 650)],
    "one_sentence": [(466, 431)],
    "river_and_finance": [(363, 331), (363, 331), (711, 471)],
    "text_to_contextual": [(903, 471), (1311, 531), (934, 911)],
}
TOLD = {  # what each walkthrough's page shows that it computed
    "formula": "3923 374 279 6864 315 9822 30",  # by tiktoken, see test_nothing_was_left_unchecked
    "one_sentence": "is · dessert    11.1466",
    "river_and_finance": "bank in the river text: 0.949 water, 0.356 money",
    "text_to_contextual": "cosine of the two banks, layer by layer: [1.0, ",
}
CLOSED = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@cache
class Page(HTMLParser):
    """A page's parts: prose, code, what its cells printed, elements with their attributes."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []  # tags around the current place, with their classes
        self.prose, self.printed, self.scripts, self.styles = "", "", "", ""
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.source = (SITE / name).read_text("utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.elements.append((tag, given))
        if tag not in CLOSED:
            self.open.append((tag, given.get("class", "")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:  # some end tags may be left out
            pass

    def handle_data(self, data: str) -> None:
        tags = {tag for tag, _ in self.open}
        if "script" in tags:
            self.scripts += data
        elif "style" in tags:
            self.styles += data
        elif any("jp-OutputArea-output" in classes for _, classes in self.open):
            self.printed += data
        elif not tags & {"pre", "code", "math"}:
            self.prose += data


def size(png: bytes) -> tuple[int, int]:
    if png[:6] == b"GIF89a":
        return struct.unpack("<HH", png[6:10])
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def pictures(name: str, page: Page) -> list[bytes]:
    """The content of each picture that a page shows, from the page itself or from the file it names."""
    found = []
    for tag, given in page.elements:
        if tag == "img":
            kind, _, rest = given["src"].partition(",")
            found.append(
                base64.b64decode(rest) if kind == "data:image/png;base64"
                else (SITE / name).parent.joinpath(given["src"]).read_bytes()
            )  # fmt: skip
    return found


def walkthroughs() -> list[str]:
    return sorted(path.stem for path in (ROOT / "docs" / "walkthroughs").glob("*.py"))


def test_every_page_was_built() -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    pages |= {f"walkthroughs/{name}.html" for name in walkthroughs()}
    assert pages == set(PAGES) - {"404.html"}
    assert sorted(TOLD) == walkthroughs()
    assert not (SITE / "hooks").exists()


@pytest.mark.parametrize("name", PAGES)
def test_formulas(name: str) -> None:
    page = Page(name)
    assert not re.search(r"\$\$|\$[^\s$][^$]*\$|\\[a-zA-Z]+\b|\\[()\[\]]", page.prose)
    assert "arithmatex" not in page.source
    assert not any("\\" in data for data in re.findall(r"<math\b.*?</math>", page.source, re.DOTALL))
    if name.startswith("walkthroughs/"):
        source = (ROOT / "docs" / name).with_suffix(".py").read_text("utf-8")
        prose = "\n".join(line for line in source.splitlines() if line.startswith("#"))
        written = re.findall(r"\$\$[^$]+\$\$|\$[^$]+\$", prose)
        assert sum(tag == "math" for tag, _ in page.elements) == len(written) > 0


@pytest.mark.parametrize("name", PAGES)
def test_every_picture_once_and_of_its_size(name: str) -> None:
    found = pictures(name, Page(name))
    assert len(set(found)) == len(found)
    assert all(len(picture) > 5000 for picture in found)  # none is an empty canvas
    sizes = [size(picture) for picture in found]
    if name.startswith("walkthroughs/"):
        expected = PICTURES[Path(name).stem]
        assert len(sizes) == len(expected), sizes
        for shown, wanted in zip(sizes, expected, strict=True):
            assert shown == pytest.approx(wanted, rel=0.1)
    elif name != "404.html":
        source = (ROOT / "docs" / name).with_suffix(".md").read_text("utf-8")
        assert len(sizes) == len(re.findall(r"!\[[^]]*\]\(", source))
        assert all(width >= 600 and height >= 300 for width, height in sizes), sizes


@pytest.mark.parametrize("name", PAGES)
def test_no_warning_no_path_no_object(name: str) -> None:
    page = Page(name)
    assert not any(given.get("data-mime-type", "").endswith("stderr") for _, given in page.elements)
    for text in (page.prose, page.printed):
        assert not re.search(r"\b\w*Warning\b|Traceback \(", text)
        assert not re.search(r"site-packages|(?<![\w.])/(home|root|tmp|usr|var|Users|opt)/|[A-Z]:\\", text)
        assert str(ROOT) not in text
    assert not re.search(r"<Figure|<matplotlib|\[<|<[\w.]+ object at 0x", page.printed)


@pytest.mark.parametrize("name", walkthroughs())
def test_nothing_was_left_unchecked(name: str) -> None:
    printed = Page(f"walkthroughs/{name}.html").printed
    assert TOLD[name] in printed
    assert "NOT CHECKED" not in printed, printed[printed.index("NOT CHECKED") :][:400]


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_loaded_from_elsewhere(name: str) -> None:
    page = Page(name)
    for tag, given in page.elements:
        loads = [given.get("src", ""), given.get("srcset", ""), given.get("poster", ""), given.get("data", "")]
        loads += [given.get("href", "")] * (tag in {"link", "use", "image"} and given.get("rel") != "canonical")
        assert not any(re.match(r"\s*(\w+:)?//", address) for address in loads), (tag, given)
        assert tag not in {"iframe", "object", "embed"}
        assert tag != "script" or given.get("src") != ""
    assert not re.search(r"https?://|import\(|importScripts", page.scripts)
    assert not re.search(r"@import|url\(\s*[\"']?(\w+:)?//", page.styles)


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    page = Page(name)
    ids = Counter(given["id"] for _, given in page.elements if given.get("id"))
    assert [repeated for repeated, count in ids.items() if count > 1 and not repeated.startswith("__")] == []
    for tag, given in page.elements:
        address = urlsplit(given.get("href", "") if tag in {"a", "link"} else given.get("src", ""))
        if address.scheme or address.netloc or name == "404.html":  # its links begin at the server's root
            continue
        file = (SITE / name).parent / unquote(address.path) if address.path else SITE / name
        assert file.exists(), (tag, given)
        if address.fragment and file == SITE / name:
            assert unquote(address.fragment) in ids, (tag, given)
