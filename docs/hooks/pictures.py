"""Draw the pictures of docs/pictures.md while the site is built: the page's own commands run, on the default model.

A command in a block of the page that ends in `--figure NAME` makes `drawn/NAME`, which the page shows below it.
"""

import json
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

PAGE = "pictures.md"
FOLDER = Path("out", "pictures")
STORY = Path(__file__).with_name("story.txt")  # the page.txt of the commands
SHOWN = re.compile(r"!\[[^]]*\]\(drawn/([^)]+)\)")
BLOCKS = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)

IN_ORDER = """
import json, sys
from regard.cli.main import main
for arguments in json.load(sys.stdin):
    try:
        main(arguments)
    except SystemExit as left:
        if left.code:
            sys.exit(f"regard {' '.join(arguments)} left with {left.code}")
"""


def commands(page: str) -> list[list[str]]:
    """Read the regard commands of a page, each as its arguments, in their order."""
    lines = "\n".join(BLOCKS.findall(page)).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("regard ")]


def prepare(folder: Path, pages: Path) -> None:
    """Make a fresh folder with the files that the commands name: a page to read, and a book to train on."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(STORY, folder / "page.txt")
    own = sorted(pages.glob("*.md")) + sorted((pages / "commands").glob("*.md"))
    (folder / "book.txt").write_text("\n".join(each.read_text("utf-8") for each in own), "utf-8")


def draw(page: str, folder: Path, pages: Path) -> dict[str, Path]:
    """Run the commands of a page; returns the file of each picture that it shows, by name.

    Raises:
        PluginError: a command failed, or the page shows a picture that no command draws.
    """
    prepare(folder, pages)
    done = subprocess.run(
        [sys.executable, "-c", IN_ORDER], input=json.dumps(commands(page)), cwd=folder, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    if done.returncode != 0:
        raise PluginError(f"{PAGE}: {done.stderr.strip()[-600:]}")
    found = {name: folder / name for name in SHOWN.findall(page)}
    missing = [name for name, file in found.items() if not file.is_file()]
    if missing:
        raise PluginError(f"{PAGE}: no command draws {', '.join(missing)}")
    return found


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Called by mkdocs when it has found the pages: draw, and add the pictures to what it publishes."""
    pages = Path(config["docs_dir"])
    drawn = draw((pages / PAGE).read_text("utf-8"), Path.cwd() / FOLDER, pages)
    for name, file in drawn.items():
        files.append(File.generated(config, f"drawn/{name}", abs_src_path=str(file)))
    return files
