"""Make the live page of docs/page.md and the screenshots of docs/gallery.md while the site is built, by their commands.

A command in a block of a page that ends in `--html NAME` makes `live/NAME`, which docs/page.md shows in a frame, or of
which docs/gallery.md shows `shots/NAME.png`; `shots/NAME.Matrix.png` is its view of that name, and `shots/serve.png`
the page of `regard serve`. In a checkout without the built page of web/ (`make page`), a model or Chromium, a sentence
stands in their place. Commands on models that are not there always stand in plain blocks.
"""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

from regard.fetched import find

PAGE, GALLERY = "page.md", "gallery.md"
FOLDER = Path("out", "live")
BLOCKS = re.compile(r"^```(?:sh|text)\n(regard .*?|make .*?)^```", re.M | re.S)
FRAMES = re.compile(r"^<iframe [^>]*\bsrc=\"live/([^\"]+)\"[^>]*></iframe>$", re.M)
SHOTS = re.compile(r"!\[[^]]*\]\(shots/(([\w-]+)(?:\.(\w+))?\.png)\)")
BUILT = Path("src", "regard", "web", "built", "page.js")
MODELS = {"SmolLM2-135M-Instruct": "smollm2", "opus-mt-en-fr": "opus-mt-en-fr"}
SERVER = "serve"  # whose page has an address in the place of a file
LEFT_OUT = "*This build of the documentation has no interactive page here. Run `make page` before you build it.*"
NO_SHOT = (
    "*This build of the documentation has no screenshot here: it lacks the page (`make page`), the model or Chromium.*"
)
taken: set[str] = set()  # the screenshots of this build


def commands(page: str) -> dict[str, list[str]]:
    """Read the commands of a page that write one to hover over: the file's name, and the arguments of regard."""
    lines = "\n".join(BLOCKS.findall(page)).replace("\\\n", " ").splitlines()
    calls = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("regard ")]
    own = {call[call.index("--html") + 1]: call for call in calls if "--html" in call}
    served = [call for call in calls if call[0] == SERVER and "--port" in call]
    return own | ({SERVER: served[0]} if served else {})


def run(call: list[str], folder: Path) -> None:
    """Run a command that writes a page.

    Raises:
        PluginError: it failed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "regard", *call], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    if done.returncode != 0:
        raise PluginError(f"regard {shlex.join(call)}: {done.stderr.strip()[-600:]}")


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
        run(known[name], folder)
    return {name: folder / name for name in FRAMES.findall(page)}


def photograph(page: str, folder: Path, browser: Any, shoot: Any) -> dict[str, Path]:
    """Run the commands of the gallery whose models are there, and take the screenshots that it shows, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    known, made = commands(page), {}
    for name, stem, view in SHOTS.findall(page):
        call = known.get(SERVER if stem == SERVER else f"{stem}.html")
        if call is None:
            raise PluginError(f"{GALLERY}: no command writes {stem}.html")
        places = {word: find(MODELS[word]) for word in call if word in MODELS}
        if None in places.values():
            continue
        call = [str(places.get(word, word)) for word in call]
        made[name] = folder / name
        if stem == SERVER:
            with subprocess.Popen(
                [sys.executable, "-u", "-m", "regard", *call], stdout=subprocess.PIPE, text=True
            ) as server:
                assert server.stdout is not None
                address = next((line.strip() for line in server.stdout if line.startswith("http")), "")
                shoot(browser, address, made[name], scale=1)
                server.terminate()
            continue
        if not (file := folder / f"{stem}.html").exists():
            run(call, folder)
        shoot(browser, file.absolute().as_uri(), made[name], view=view, scale=1)
    return made


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Called by mkdocs when it has found the pages: make the live page and screenshots, and add them to the site."""
    taken.clear()
    if not BUILT.is_file():
        return files
    docs = Path(config["docs_dir"])
    for name, file in make((docs / PAGE).read_text("utf-8"), Path.cwd() / FOLDER).items():
        files.append(File.generated(config, f"live/{name}", abs_src_path=str(file)))
    screenshots, folder = runpy.run_path(str(Path(__file__).with_name("screenshots.py"))), Path.cwd() / FOLDER / "shots"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(Path(__file__).with_name("story.txt"), folder / "page.txt")
    with screenshots["opened"]() as browser:
        made = (
            {}
            if browser is None
            else photograph((docs / GALLERY).read_text("utf-8"), folder, browser, screenshots["shoot"])
        )
    for name, file in made.items():
        taken.add(name)
        files.append(File.generated(config, f"shots/{name}", abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page's source: say so where there is no live page or screenshot to show."""
    if page.file.src_uri == GALLERY:
        return SHOTS.sub(lambda found: found[0] if found[1] in taken else NO_SHOT, markdown)
    return markdown if page.file.src_uri != PAGE or BUILT.is_file() else FRAMES.sub(LEFT_OUT, markdown)
