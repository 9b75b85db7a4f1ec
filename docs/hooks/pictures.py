"""Draw the pictures of docs/pictures.md and docs/questions while the site is built: the pages' own commands run.

A command in a block of a page that ends in `--figure NAME` makes `drawn/NAME`, which the page shows below it. Commands
on SmolLM2 stand in plain blocks: they run if `regard fetch smollm2` has been run. Otherwise, a sentence is in
the picture's place.
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

from regard.fetched import find

PAGE = "pictures.md"
QUESTIONS = "questions"  # a folder of pages
SMOLLM2 = "SmolLM2-135M-Instruct"
LEFT_OUT = f"*This build of the documentation has no figure here, because it had no {SMOLLM2} to draw it with.*"
FOLDER = Path("out", "pictures")
STORY = Path(__file__).with_name("story.txt")  # the page.txt of the commands
SHOWN = re.compile(r"!\[[^]]*\]\(drawn/([^)]+)\)")
BLOCKS = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)
PLAIN = re.compile(r"^```text\n(regard .*?)^```", re.M | re.S)

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
    folder = folder_of_smollm2()
    plain = [] if folder is None else [block for block in PLAIN.findall(page) if SMOLLM2 in block]
    lines = "\n".join([*BLOCKS.findall(page), *plain]).replace("\\\n", " ").splitlines()
    calls = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("regard ")]
    return [[str(folder) if word.startswith(SMOLLM2) else word for word in call] for call in calls]  # NAME or NAME.gguf


def folder_of_smollm2() -> Path | None:
    """Find SmolLM2's folder, or None."""
    folder = find("smollm2")
    return folder.absolute() if folder and any(folder.glob("*.gguf")) else None


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
        raise PluginError(f"{folder.name}: {done.stderr.strip()[-600:]}")
    found = {name: folder / name for name in SHOWN.findall(page)}
    missing = [name for name, file in found.items() if not file.is_file()]
    if missing:
        raise PluginError(f"{folder.name}: no command draws {', '.join(missing)}")
    return found


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Called by mkdocs when it has found the pages: draw, and add the pictures to what it publishes."""
    pages = Path(config["docs_dir"])
    for page in (pages / PAGE, *sorted((pages / QUESTIONS).glob("*.md"))):
        own = shown(page.read_text("utf-8"))
        if not SHOWN.search(own):
            continue
        beside = page.parent.relative_to(pages)
        for name, file in draw(own, Path.cwd() / FOLDER / page.stem, pages).items():
            files.append(File.generated(config, (beside / "drawn" / name).as_posix(), abs_src_path=str(file)))
    return files


def shown(page: str) -> str:
    """A page as it can be shown: pictures of SmolLM2 are left out, with a sentence, where it is not there."""
    if SMOLLM2 not in page or folder_of_smollm2() is not None:
        return page
    return SHOWN.sub(LEFT_OUT, page)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page's source: say where a picture is left out."""
    return shown(markdown) if page.file.src_uri.startswith(f"{QUESTIONS}/") else markdown
