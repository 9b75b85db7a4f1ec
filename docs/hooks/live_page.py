"""Make the live page of docs/page.md while the site is built: the page's own command runs, on the default model.

A command in a block of the page that ends in `--html NAME` makes `live/NAME`, which the page shows in a frame. In a
checkout without the built page of web/ (`make page`) a sentence stands in the frame's place. Chromium, where it is,
makes of it the picture on the first page of the site; else that shows one that is kept.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

PAGE = "page.md"
FOLDER = Path("out", "live")
BLOCKS = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)
FRAMES = re.compile(r"^<iframe [^>]*\bsrc=\"live/([^\"]+)\"[^>]*></iframe>$", re.M)
BUILT = Path("src", "regard", "web", "built", "page.js")
HOME, KEPT = "live/home.png", "images/page.png"  # of the first page; what it shows where none can be made
LEFT_OUT = "*This build of the documentation has no interactive page here. Run `make page` before you build it.*"


def commands(page: str) -> dict[str, list[str]]:
    """Read the commands of a page that write one to hover over: the file's name, and the arguments of regard."""
    lines = "\n".join(BLOCKS.findall(page)).replace("\\\n", " ").splitlines()
    calls = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("regard ")]
    return {call[call.index("--html") + 1]: call for call in calls if "--html" in call}


def make(page: str, folder: Path) -> dict[str, Path]:
    """Run the commands whose files a page shows in frames; returns the files, by name.

    Raises:
        PluginError: a command failed, or none writes what a frame shows.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = commands(page)
    for name in FRAMES.findall(page):
        if name not in known:
            raise PluginError(f"{PAGE}: no command writes {name}")
        done = subprocess.run(
            [sys.executable, "-m", "regard", *known[name]], cwd=folder, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONUTF8": "1"},
        )  # fmt: skip
        if done.returncode != 0:
            raise PluginError(f"{PAGE}: {done.stderr.strip()[-600:]}")
    return {name: folder / name for name in FRAMES.findall(page)}


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Called by mkdocs when it has found the pages: make the live page, and add it to what it publishes."""
    if BUILT.is_file():
        made = make((Path(config["docs_dir"]) / PAGE).read_text("utf-8"), Path.cwd() / FOLDER)
        for name, file in made.items():
            files.append(File.generated(config, f"live/{name}", abs_src_path=str(file)))
        if picture := photograph(next(iter(made.values()))):
            files.append(File.generated(config, HOME, abs_src_path=str(picture)))
    return files


def photograph(page: Path) -> Path | None:
    """Make the picture of a page that the first page of the site shows; None where there is no Chromium to make it."""
    picture, program = page.with_name(Path(HOME).name), shutil.which("chromium") or shutil.which("google-chrome")
    picture.unlink(missing_ok=True)
    if program is None or importlib.util.find_spec("playwright") is None:
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        shoot(browser, page, picture)
        browser.close()
    return picture


def shoot(browser: Any, page: Path, picture: Path) -> str:
    """Save a screenshot of a page's first view. Return the text of the page."""
    size = {"width": 1300, "height": 850}
    tab = browser.new_page(viewport=size, device_scale_factor=1.5, color_scheme="light", reduced_motion="reduce")
    tab.goto(page.as_uri())
    tab.wait_for_timeout(3000)  # the weights are computed in the page
    tab.screenshot(path=picture)
    text = tab.inner_text("body")
    tab.close()
    return text


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page's source: say so where there is no live page to show."""
    if page.file.src_uri == "index.md" and not (FOLDER / Path(HOME).name).is_file():
        return markdown.replace(HOME, KEPT)
    return markdown if page.file.src_uri != PAGE or BUILT.is_file() else FRAMES.sub(LEFT_OUT, markdown)
