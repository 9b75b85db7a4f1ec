"""Make the live page of docs/page.md while the site is built: the page's own command runs, on the default model.

A command in a block of the page that ends in `--html NAME` makes `live/NAME`, which the page shows in a frame. In a
checkout without the built page of web/ (`make page`) a sentence stands in the frame's place.
"""

import os
import re
import shlex
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
LEFT_OUT = "*The live page stood here, had the built page been there when these pages were made (`make page`).*"


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
        for name, file in make((Path(config["docs_dir"]) / PAGE).read_text("utf-8"), Path.cwd() / FOLDER).items():
            files.append(File.generated(config, f"live/{name}", abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page's source: say so where there is no live page to show."""
    return markdown if page.file.src_uri != PAGE or BUILT.is_file() else FRAMES.sub(LEFT_OUT, markdown)
