"""The code of the README and the documentation's pages, as it is printed."""

import importlib.util
import re
import subprocess
from typing import Any

from tests.support import ROOT

EVERY = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = ("make", "pip", "curl", "accelerate")  # programs that blocks for a shell name beside regard


def code_blocks(page: str, language: str) -> list[str]:
    """A page's code in a language."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [code for name, code in fences if name == language]


def pages(language: str) -> list[str]:
    """All pages that have code in a language, by their path in the repository."""
    names = [page.relative_to(ROOT).as_posix() for page in EVERY]
    return [name for name in names if code_blocks(name, language)]


def hook(name: str) -> Any:
    """A module of the site's build."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_shell(page: str) -> list[list[str]]:
    """A page's commands, each a program and its arguments as bash hands them over; nothing is run."""
    record = "".join(f'{name}() {{ printf "%s\\0" {name} "$@" "<end>"; }}; ' for name in ("regard", *OTHERS))
    script = record + "\n".join(code_blocks(page, "sh"))
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, (page, done.stderr)
    calls: list[list[str]] = [[]]
    for word in done.stdout.split("\0")[:-1]:
        if word == "<end>":
            calls.append([])
        else:
            calls[-1].append(word)
    return calls[:-1]


def commands(page: str) -> list[list[str]]:
    """The arguments of each call of regard."""
    return [call[1:] for call in in_shell(page) if call[0] == "regard"]
