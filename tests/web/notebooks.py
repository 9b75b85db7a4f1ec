"""Notebook servers for the tests, each a process of its own on this machine, ended by its number."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError

from tests.support import ROOT

SECONDS = 90  # that a server may take to start


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(folder: Path) -> dict[str, str]:
    """The environment of a server: this checkout's package, and folders of its own for whatever it keeps."""
    own = {
        name: str(folder / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    }
    own |= {"IPYTHONDIR": str(folder / "ipython"), "XDG_CONFIG_HOME": str(folder / "config")}
    own |= {"XDG_STATE_HOME": str(folder / "state"), "XDG_CACHE_HOME": str(folder / "cache")}
    return {**os.environ, **own, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}


@contextmanager
def served(arguments: Sequence[str], url: str, folder: Path) -> Iterator[None]:
    """Run a server until its block is left. url: what answers once it is ready."""
    log = folder / "server.log"
    with log.open("wb") as written:
        server = subprocess.Popen(
            [sys.executable, "-m", *arguments], cwd=folder, env=environment(folder), stdout=written,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            wait_for(url, server, log)
            yield
        finally:
            server.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)  # its kernels, where they are left
            server.wait()


def wait_for(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until a server answers."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """Run JupyterLab on a folder; gives the address of a file of it, up to its name."""
    port, token = free_port(), secrets.token_hex(16)
    arguments = [
        "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=",
    ]  # fmt: skip
    with served(arguments, f"http://127.0.0.1:{port}/api/status?token={token}", folder):
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token={token}"


@contextmanager
def marimo(file: Path) -> Iterator[str]:
    """Run a marimo notebook as an app; gives its address."""
    port = free_port()
    arguments = [
        "marimo", "run", str(file), "--headless", "--host", "127.0.0.1", "--port", str(port), "--no-token",
    ]  # fmt: skip
    with served(arguments, f"http://127.0.0.1:{port}/health", file.parent):
        yield f"http://127.0.0.1:{port}/"


def notebook(cells: Sequence[str]) -> str:
    """A Jupyter notebook of code cells; one that begins with # is text."""
    made = [
        {"cell_type": "markdown", "id": f"cell{n}", "metadata": {}, "source": source}
        if source.startswith("# ")
        else {
            "cell_type": "code", "id": f"cell{n}", "metadata": {}, "source": source, "outputs": [],
            "execution_count": None,
        }
        for n, source in enumerate(cells)
    ]  # fmt: skip
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
