"""The built site, read as it will be seen: formulas, pictures, what was printed, and nothing from elsewhere.

`make docs` builds it and runs this; REGARD_SITE names the folder.
"""

import base64
import os
import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from PIL import Image

from regard.fetched import find
from tests.support import ROOT
from tests.test_docs import DOORS

SITE = Path(os.environ.get("REGARD_SITE", ROOT / "none"))
pytestmark = [
    pytest.mark.docs,
    pytest.mark.skipif("REGARD_SITE" not in os.environ, reason="no built site (make docs builds it and runs this)"),
]
FOUND = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
PAGES = [name for name in FOUND if not name.startswith("live/")] or ["(none)"]  # those are test_live_page.py's
PICTURES = {  # of each lesson, in order: what the picture says that it shows
    "1_text_to_vectors": ["From text to output", "What is the capital", "The sentence of the river"],
    "2_words_before_context": ["Skip-gram guesses", "Ranks of thirteen"],
    "3_position": ["Three hands of a clock", "Positional encodings: fast waves", "Cosines of learned positions",
                   "A query turns", "Attention learns to copy"],
    "4_self_attention": ["Three steps for bank", "Scores of eleven words", "X goes into a box"],
    "5_queries_keys_values": ["The word bank moves", "Weights of four words", "The input 6 × 16", "One query's way"],
    "6_heads": ["Eight heads", "The weights of eight", "One head's weights lie along",
                "Lines from ate", "A kernel's weights", "The heads that attend most from"],
    "7_a_transformer_that_writes": ["A decoder block", "The weights of the first nine", "From an",
                                    "The likeliest next", "Weights of the"],
    "8_across": ["Queries from one sequence", "An encoder block", "Cross-attention of both",
                 "Attention of a real translator", "The red square's patches", "A U-Net"],
    "9_contextual_embeddings": ["MiniLM: self-attention", "Cosines of bank to five words"],
    "10_words_that_paint": ["A picture of two digits", "a seven top left", "The heat of",
                            "Plain and contextual values"],
    "11_since_2017": ["Scores of one query", "The triangle of weights", "Nine query heads", "A band of width 4",
                      "Weight that the words give", "Bytes of scores"],
    "12_an_induction_head": ["The loss of repeated letters", "A head that attends to the previous"],
}  # fmt: skip
TOLD = {  # what each lesson's page shows that it computed
    "1_text_to_vectors": "3923 374 279 6864 315 9822 30",  # by tiktoken, see test_nothing_was_left_unchecked
    "2_words_before_context": "Held-out loss, in nats",
    "3_position": "278 of 400 columns do not repeat within 100 positions",
    "4_self_attention": "weights from 0.089 to 0.098",
    "5_queries_keys_values": "dessert  11.1466   2.2753   0.4917",
    "6_heads": "head 0's query changes by",
    "7_a_transformer_that_writes": "This is the maiden all forlorn that milked the cow with the crumpled horn",
    "8_across": "“red” gets",
    "9_contextual_embeddings": "cosine of the two banks    1.000",
    "10_words_that_paint": "keys exchanged: 2·7",
    "11_since_2017": "a window of 4,096 in 32 layers reaches 131,040 tokens back",
    "12_an_induction_head": "loss of even guesses 3.26 nats",
}
ARTICLES = {  # of each page on an article: how many pictures, how many of its figures stand beside ours
    "articles/one_sentence": (8, 137),
    "articles/contextual_embeddings": (12, 30),
    "articles/formula": (5, 0),
    "articles/river_and_finance": (4, 96),
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


def size(picture: bytes) -> tuple[float, float]:
    """Width and height, in pixels, and of an SVG in points."""
    if picture.startswith(b"<?xml"):
        box = re.search(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)
        assert box is not None
        return float(box[1]), float(box[2])
    with Image.open(BytesIO(picture)) as opened:
        return opened.size


def pictures(name: str, page: Page) -> list[bytes]:
    """The content of each picture that a page shows, from the page itself or from the file it names."""
    found = []
    for tag, given in page.elements:
        if tag == "img":
            kind, _, rest = given["src"].partition(",")
            found.append(
                base64.b64decode(rest) if kind in ("data:image/png;base64", "data:image/svg+xml;base64")
                else (SITE / name).parent.joinpath(given["src"].partition("#")[0]).read_bytes()  # "#only-dark"
            )  # fmt: skip
    return found


def lessons() -> list[str]:
    return sorted(path.stem for path in (ROOT / "docs" / "lessons").glob("[0-9]*_*.py"))


def test_every_page_was_built() -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    pages |= {f"lessons/{name}.html" for name in lessons()} | {f"{name}.html" for name in (*ARTICLES, "five_lines")}
    assert pages == set(PAGES) - {"404.html"}
    assert sorted(TOLD) == lessons()
    assert not (SITE / "hooks").exists()
    assert not (SITE / "lessons" / "drawings").exists()


@pytest.mark.parametrize("name", PAGES)
def test_the_menu_has_the_doors_and_behind_them_one_doors_pages(name: str) -> None:
    source = Page(name).source
    menu = re.search(r'<nav class="md-nav md-nav--primary.*?<div class="md-content"', source, re.DOTALL)
    tabs = re.search(r'<nav class="md-tabs".*?</nav>', source, re.DOTALL)
    assert menu is not None
    assert tabs is not None
    doors = re.findall(r'<a href="([^"]+)" class="md-tabs__link">', tabs[0])
    assert [Path(door).stem for door in doors] == [door.lower().replace(" ", "_") for door in DOORS]
    links = set(re.findall(r'<a href="([^"#]+)" class="md-nav__link', menu[0]))
    assert set(doors) <= links | {"./" + Path(name).name, Path(name).name, name}
    assert len(links) <= len(DOORS) + 27


@pytest.mark.parametrize("name", PAGES)
def test_formulas(name: str) -> None:
    page = Page(name)
    assert not re.search(r"\$\$|\$[^\s$][^$]*\$|\\[a-zA-Z]+\b|\\[()\[\]]", page.prose)
    assert "arithmatex" not in page.source
    assert not any("\\" in data for data in re.findall(r"<math\b.*?</math>", page.source, re.DOTALL))
    if name.startswith(("lessons/", "articles/")):
        source = (ROOT / "docs" / name).with_suffix(".py").read_text("utf-8")
        prose = "\n".join(line for line in source.splitlines() if line.startswith("#"))
        written = re.findall(r"\$\$[^$]+\$\$|\$[^$]+\$", prose)
        assert sum(tag == "math" for tag, _ in page.elements) == len(written)


@pytest.mark.parametrize("name", PAGES)
def test_every_picture_once_and_of_its_size(name: str) -> None:
    if name == "questions/paris.html" and find("smollm2") is None:
        pytest.skip("its pictures are drawn with SmolLM2: run regard fetch smollm2")
    found = pictures(name, Page(name))
    assert len(set(found)) == len(found)
    assert all(len(picture) > 5000 for picture in found)  # none is an empty canvas
    sizes = [size(picture) for picture in found]
    if name.startswith("lessons/"):
        said = [given["alt"] for tag, given in Page(name).elements if tag == "img"]
        expected = list(PICTURES[Path(name).stem])
        if find("opus-mt-en-fr") is None:
            expected = [start for start in expected if not start.startswith("Attention of a real translator")]
        assert len(said) == len(expected), said
        assert all(shown.startswith(start) for shown, start in zip(said, expected, strict=True)), said
        assert all(width >= 280 and height >= 50 for width, height in sizes), sizes
    elif name == "five_lines.html":
        assert len(sizes) == 1
    elif (article := name.removesuffix(".html")) in ARTICLES:
        assert len(sizes) == ARTICLES[article][0]
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


@pytest.mark.parametrize("name", lessons())
def test_nothing_was_left_unchecked(name: str) -> None:
    printed = Page(f"lessons/{name}.html").printed
    assert TOLD[name] in printed
    assert "NOT CHECKED" not in printed, printed[printed.index("NOT CHECKED") :][:400]


@pytest.mark.parametrize("name", ARTICLES)
def test_figures_of_an_article_stand_beside_ours(name: str) -> None:
    printed = Page(f"{name}.html").printed
    counts = [int(count) for count in re.findall(r"the same to \d decimals: (\d+) of \1\n", printed)]
    assert sum(counts) == ARTICLES[name][1] + 87 * ("REGARD_LESSON_MODEL" in os.environ and "contextual" in name)
    assert "NOT CHECKED" not in printed


def test_a_trace_shows_itself_in_a_notebook() -> None:
    page = Page("five_lines.html")
    shown = " ".join(page.printed.split())
    assert "“bank” attends unusually strongly to “river”" in shown  # of trace.see
    assert "vectors start identical and end at cosine 0.84" in shown  # of regard.see
    assert "Tokens by effect on “bank”" in shown  # of regard.why
    assert "the word's vector has 384 numbers" in shown


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_loaded_from_elsewhere(name: str) -> None:
    page = Page(name)
    for tag, given in page.elements:
        loads = [given.get("src", ""), given.get("srcset", ""), given.get("poster", ""), given.get("data", "")]
        loads += [given.get("href", "")] * (tag in {"link", "use", "image"} and given.get("rel") != "canonical")
        assert not any(re.match(r"\s*(\w+:)?//", address) for address in loads), (tag, given)
        assert tag not in {"object", "embed"}
        assert tag != "iframe" or given["src"].startswith("live/")
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
