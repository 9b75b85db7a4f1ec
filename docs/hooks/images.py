"""Remake the images that the README and the docs keep in docs/images: `make pictures`, or this script with their names.

Each is drawn by a command of the repository's own pages, and has the first sentence of the result as its title. What
lacks a model is left as it is, with a line that says so: REGARD_OPUS_MT and REGARD_DINOV2 name folders.
"""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from PIL.PngImagePlugin import PngInfo

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
FOLDERS = {"alignment.png": ("opus-mt-en-fr", "REGARD_OPUS_MT"), "look.jpg": ("dinov2-small", "REGARD_DINOV2")}
WIDTH = 1100  # pixels of a photograph


def command(file: str, output: str) -> list[str]:
    """Read the arguments of the command of a page, or of the Makefile, that writes this output."""
    lines = (ROOT / file).read_text("utf-8").replace("\\\n", " ").splitlines()
    line = next(line for line in lines if "regard see" in line and output in line)
    return shlex.split(line[line.index("regard see") + 7 :].partition("$(")[0])


def make(name: str, folder: Path, browser: Any = None) -> str | None:
    """Make an image in a folder, and return its title; None where its model is not there. browser: of a page's."""
    if name.startswith("page"):
        call, file = command("Makefile", "out/bank.png"), folder / "page.html"
        call[call.index("--figure") :] = ["--html", str(file)]
    else:
        call = command(
            *{"alignment.png": ("docs/commands/see.md", name), "look.jpg": ("docs/vision.md", "look.png")}[name]
        )
        model, variable = FOLDERS[name]
        if not Path(os.environ.get(variable, ""), "config.json").is_file():
            return None
        call = [os.environ[variable] if word == model else word for word in call]
        file = folder / call[call.index("--figure") + 1]
        if name == "look.jpg":
            from sklearn.datasets import load_sample_images

            for photograph, pixels in zip(("china", "flower"), load_sample_images().images, strict=True):
                Image.fromarray(pixels).save(folder / f"{photograph}.png")
    done = subprocess.run([sys.executable, "-m", "regard", *call, "--json", "-"], cwd=folder, check=True, text=True,
                          stdout=subprocess.PIPE, encoding="utf-8", env={**os.environ, "PYTHONUTF8": "1"})  # fmt: skip
    title = first_finding(done.stdout)
    if file.suffix == ".html":
        shoot = runpy.run_path(str(Path(__file__).with_name("screenshots.py")))["shoot"]
        shown = shoot(browser, file.as_uri(), folder / name, dark="dark" in name)
        assert _letters(title) in _letters(shown), f"{title!r} is not on the page"
        file = folder / name
    with Image.open(file) as drawn:
        save_small(drawn.convert("RGB"), folder / name, title)
    return title


def _letters(text: str) -> str:
    """A text without blanks and marks of direction."""
    return re.sub(r"[\s\u2066-\u2069]", "", text)


def first_finding(output: str) -> str:
    """Return the first sentence of a command's JSON."""
    return str(json.loads(output)["findings"][0])


def save_small(drawn: Image.Image, file: Path, title: str) -> None:
    """Save an image with its title: a drawing with few colours, a photograph as JPEG."""
    if file.suffix == ".jpg":
        drawn.thumbnail((WIDTH, WIDTH))
        drawn.save(file, quality=70, optimize=True, comment=title.encode())
        return
    info = PngInfo()
    info.add_itxt("Title", title)
    drawn.quantize(192, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(file, optimize=True, pnginfo=info)


def title_of(file: Path) -> str:
    """Return the title that an image was saved with."""
    with Image.open(file) as image:
        kept = image.info.get("Title") or image.info.get("comment", b"")
        return kept if isinstance(kept, str) else kept.decode()


def main(names: list[str]) -> None:
    """Remake some images, or all."""
    screenshots = runpy.run_path(str(Path(__file__).with_name("screenshots.py")))
    with tempfile.TemporaryDirectory() as folder, screenshots["opened"]() as browser:
        for name in names or ["page.png", "page_dark.png", *FOLDERS]:
            missing = browser is None if name.startswith("page") else False
            title = None if missing else make(name, Path(folder), browser)
            print(f"{name}: {title or 'left as it is, without its model or a browser'}")
            if title is not None:
                (IMAGES / name).write_bytes(Path(folder, name).read_bytes())


if __name__ == "__main__":
    main(sys.argv[1:])
