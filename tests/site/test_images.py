"""The images in docs/images have the size and title that the documented commands give them today."""

import os
import re
import runpy
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import matplotlib.image
import pytest

from benchmarks.attention import draw
from tests.support import ROOT, run_in_process
from tests.support.pages import commands

IMAGES = ROOT / "docs" / "images"
OPUS = os.environ.get("REGARD_OPUS_MT", "")


def assert_alike(made: Path) -> None:
    """Compare an image's size with that of the documentation's image of its name, and check that neither is blank."""
    new, old = (matplotlib.image.imread(file) for file in (made, IMAGES / made.name))
    assert new.shape[:2] == pytest.approx(old.shape[:2], rel=0.1)
    assert min(new[..., :3].std(), old[..., :3].std()) > 0.02


def test_every_image_is_remade_here() -> None:
    remade = {"alignment.png", "memory.png", "page.png"}
    assert {file.name for file in IMAGES.iterdir()} == remade | {"look.jpg"}  # which needs DINOv2-small


def test_memory(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "performance" / "attention.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:tokens|MiB, statistics afterwards) \|(.*)\|$", page, re.M)
    lengths, sizes = ([int(cell.replace(",", "")) for cell in row.split("|")] for row in rows)
    draw(dict(zip(lengths, map(float, sizes), strict=True)), tmp_path / "memory.png")
    assert_alike(tmp_path / "memory.png")


@pytest.mark.real
@pytest.mark.skipif(not Path(OPUS, "model.safetensors").is_file(), reason=f"no model in REGARD_OPUS_MT={OPUS!r}")
def test_alignment(tmp_path: Path) -> None:
    (call,) = (call for call in commands("docs/commands/see.md") if "alignment.png" in call)
    assert run_in_process(tmp_path, [OPUS if word == "opus-mt-en-fr" else word for word in call]).returncode == 0
    assert_alike(tmp_path / "alignment.png")


@pytest.mark.browser
def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chromium: Any) -> None:
    call = [*commands("README.md")[0], "--html", "bank.html"]
    assert run_in_process(tmp_path, call).returncode == 0
    for name in ("mkdocs.exceptions", "mkdocs.structure.files"):  # which the screenshot doesn't need
        monkeypatch.setitem(sys.modules, name, MagicMock())
    hook = runpy.run_path(str(ROOT / "docs" / "hooks" / "live_page.py"))
    text = hook["shoot"](chromium, tmp_path / "bank.html", tmp_path / "page.png")
    assert "attends most distinctively to" in text
    assert "layer 0, head 4" in text  # as the image's description in the README says
    assert_alike(tmp_path / "page.png")
