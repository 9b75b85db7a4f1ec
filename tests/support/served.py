"""Run `regard serve` as a person does, and end it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def served(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """Run `regard serve`; gives the process, its port and its token. It is ended at the end, however that comes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        assert "Open this link" in first, first or process.stderr.read()
        link = process.stdout.readline()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{32})\n", link)
        assert found, link
        yield process, int(found[1]), found[2]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
