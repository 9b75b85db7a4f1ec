"""A command that runs where a page is made, with what it prints."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path


def run(command: str, folder: Path | None = None) -> None:
    """Run `regard ...` as it stands, and print it, folded as a shell reads it, with its output.

    folder: where its files go.

    Raises:
        RuntimeError: it failed, with what it said.
    """
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "regard", *shlex.split(command)[1:]],
        cwd=folder, env=env, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    lines = ["$"]
    for word in re.findall(r'"[^"]*"|\S+', command):
        if len(lines[-1]) + len(word) > 77:
            lines.append("   ")
        lines[-1] += f" {word}"
    print(" \\\n".join(lines), done.stdout.rstrip(), sep="\n")
