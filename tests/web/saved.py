"""Save pictures of views as a hand would, and read what they hold."""

import re
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import numpy as np
from PIL import Image

SVG = "{http://www.w3.org/2000/svg}"
MARGIN = 16  # px around a picture
TAGS = {"svg", "title", "desc", "defs", "rect", "path", "text", "g", "line", "circle", "image", "clipPath"} | {
    "linearGradient",
    "stop",
}


@dataclass
class Saved:
    """A picture that was saved: the file's name, its bytes, and what the page said of it."""

    name: str
    content: bytes
    said: str

    @property
    def root(self) -> ElementTree.Element:
        return ElementTree.fromstring(self.content)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of an SVG in px."""
        return int(self.root.get("width", 0)), int(self.root.get("height", 0))

    def all(self, tag: str) -> list[ElementTree.Element]:
        """The drawn elements of a name, in order: not those of definitions."""
        return [each for part in self.root if part.tag != SVG + "defs" for each in part.iter(SVG + tag)]

    @property
    def texts(self) -> list[str]:
        return ["".join(each.itertext()) for each in self.all("text")]


def save(page: Any, kind: str = "svg") -> Saved:
    """Press the button and take what is downloaded."""
    with page.tab.expect_download() as told:
        page.tab.click(f"[data-save={kind}]")
    page.tab.wait_for_selector("[data-saved]:has-text('Saved')")
    page.tab.mouse.move(1, 1)  # so that it points at nothing when the view is prepared
    content = told.value.path().read_bytes()
    return Saved(told.value.suggested_filename, content, page.tab.inner_text("[data-saved]"))


def stands_alone(picture: Saved) -> None:
    """Check that an SVG runs nothing and needs nothing from anywhere."""
    for element in picture.root.iter():
        assert element.tag.removeprefix(SVG) in TAGS, element.tag
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on"), name
            if name.endswith("href"):
                assert value.startswith("data:image/png;base64,")
            elif "url(" in value:
                assert re.fullmatch(r"url\(#regard-\d+\)", value)
            else:
                assert ":" not in value or name == "style", (name, value)


def bare(text: str) -> str:
    """A text without blanks and marks that tell which way letters go, control characters as their pictures."""
    seen = re.sub(r"[\s\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]", "", text)
    return re.sub(r"[\x00-\x1f]", lambda found: chr(0x2400 + ord(found[0])), seen)


class Prepared:
    """The view as it stands while a picture is made of it: without what is for hands, with its title above."""

    def __init__(self, page: Any, picture: Saved) -> None:
        self._tab = page.tab
        title = page.tab.title().removesuffix(" · regard")
        said = picture.root.findtext(f"{SVG}title") or ""
        self._lines = [title, said.removeprefix(title).removeprefix(" · ")]

    def __enter__(self) -> Any:
        self._tab.evaluate(
            """lines => { const view = document.querySelector("[id$='-view']"); view.dataset.picture = "";
            const head = document.createElement("div"); head.className = "pictured";
            for (const [n, line] of lines.entries()) { const each = document.createElement(n ? "span" : "b");
                each.dir = "auto"; each.textContent = line; head.append(each); }
            view.prepend(head); }""",
            self._lines,
        )
        return self._tab.locator("[id$='-view']")

    def __exit__(self, *_: object) -> None:
        self._tab.evaluate(
            """() => { const view = document.querySelector("[id$='-view']");
            view.querySelector(".pictured").remove(); delete view.dataset.picture; }"""
        )


def view_alone(page: Any, picture: Saved) -> tuple[np.ndarray, str]:
    """The pixels of the view as it is prepared for a picture, (height, width, 3), and its text."""
    with Prepared(page, picture) as view:
        page.tab.wait_for_timeout(100)
        return pixels(view.screenshot()), view.inner_text()


def drawn_alone(page: Any, picture: Saved, sharp: int = 1) -> np.ndarray:
    """The pixels of an SVG that a browser shows by itself, in a window of its size, (height, width, 3)."""
    width, height = picture.size
    context = page.tab.context.browser.new_context(
        viewport={"width": width, "height": height}, device_scale_factor=sharp, offline=True
    )
    tab = context.new_page()
    complaints: list[str] = []
    tab.on("console", lambda line: complaints.append(line.text))
    file = page.file.parent / picture.name
    file.write_bytes(picture.content)
    tab.goto(file.as_uri())
    shot = pixels(tab.screenshot())
    context.close()
    assert complaints == []
    return shot


def cells_of(picture: Saved) -> list[dict[tuple[float, float], str]]:
    """The grids of a picture: the colour of each cell by where it begins."""
    grids = []
    for group in picture.all("g"):
        if group.get("shape-rendering"):
            found = {}
            for path in group:
                for x, y in re.findall(r"M(-?[\d.]+) (-?[\d.]+)h", path.get("d", "")):
                    found[float(x), float(y)] = path.get("fill", "")
            grids.append(found)
    return grids


def canvas_cells(page: Any) -> list[list[list[str | None]]]:
    """The pixels of the view's canvases that show cells, row by row, as colours; None where one is transparent."""
    read: list[list[list[str | None]]] = page.tab.evaluate(
        """() => [...document.querySelectorAll("[id$='-view'] canvas")].filter(c => c.offsetWidth
            && getComputedStyle(c).imageRendering == "pixelated").map(canvas => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const two = value => value.toString(16).padStart(2, "0");
          const colour = n => data[n + 3] ? "#" + [0, 1, 2].map(k => two(data[n + k])).join("") : null;
          return Array.from({ length: canvas.height }, (_, r) =>
            Array.from({ length: canvas.width }, (_, c) => colour(4 * (r * canvas.width + c)))); })"""
    )
    return read


def pixels(png: bytes) -> np.ndarray:
    """A PNG's colours, (height, width, 3)."""
    return np.asarray(Image.open(BytesIO(png)).convert("RGB")).astype(int)


def apart(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """How far two pictures are apart where both are: the mean difference of 0 to 255, the share that differs much."""
    height, width = min(one.shape[0], other.shape[0]), min(one.shape[1], other.shape[1])
    difference = np.abs(one[:height, :width] - other[:height, :width]).max(axis=2)
    return float(difference.mean()), float((difference > 96).mean())
