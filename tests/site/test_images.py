"""The images in docs/images have the size and title that the commands of the docs give them today."""

import re
import runpy
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest

from benchmarks.attention import draw
from tests.support import ROOT

IMAGES = ROOT / "docs" / "images"
HOOK = runpy.run_path(str(ROOT / "docs" / "hooks" / "images.py"))


def assert_alike(made: Path) -> None:
    """Compare an image's size with that of the documentation's image of its name, and check that neither is blank."""
    new, old = (matplotlib.image.imread(file) for file in (made, IMAGES / made.name))
    assert new.shape[:2] == pytest.approx(old.shape[:2], rel=0.1)
    assert min(new[..., :3].std(), old[..., :3].std()) > 0.02


def test_every_image_is_remade_and_small() -> None:
    assert {file.name for file in IMAGES.iterdir()} == {"page.png", "page_dark.png", *HOOK["FOLDERS"], "memory.png"}
    sizes = [file.stat().st_size for file in IMAGES.iterdir()]
    assert max(sizes) <= 150_000
    assert sum(sizes) <= 500_000


def test_memory(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:tokens|MiB, statistics afterwards) \|(.*)\|$", page, re.M)
    lengths, sizes = ([int(cell.replace(",", "")) for cell in row.split("|")] for row in rows)
    draw(dict(zip(lengths, map(float, sizes), strict=True)), tmp_path / "memory.png")
    assert_alike(tmp_path / "memory.png")


def remade(name: str, folder: Path, browser: Any = None) -> None:
    """Remake an image, and compare its title and size with those of the one that is kept."""
    title = HOOK["make"](name, folder, browser)
    if title is None:
        pytest.skip(f"no model for {name}")
    assert HOOK["title_of"](folder / name) == HOOK["title_of"](IMAGES / name) == title
    assert_alike(folder / name)


@pytest.mark.real
@pytest.mark.parametrize("name", HOOK["FOLDERS"])
def test_figures_have_the_title_and_size_that_their_commands_give_today(tmp_path: Path, name: str) -> None:
    remade(name, tmp_path)


@pytest.mark.browser
@pytest.mark.parametrize("name", ["page.png", "page_dark.png"])
def test_so_has_the_page(tmp_path: Path, chromium: Any, name: str) -> None:
    remade(name, tmp_path, chromium)
    alt = re.search(r'page.png" alt="([^"]+)"', (ROOT / "README.md").read_text("utf-8"))
    assert alt is not None
    assert set(re.findall("“[^”]+”", alt[1])) <= set(re.findall("“[^”]+”", HOOK["title_of"](IMAGES / name)))
