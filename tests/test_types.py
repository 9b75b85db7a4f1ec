"""The public API as a type checker sees it: the README's code, and what `trace` returns."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

REVEALED = """
import regard
model = regard.load()
reveal_type(model.trace("a").attention[0])  # LabelledMap
reveal_type(model.trace("a").attention[0]["a", "b"])  # Tensor
reveal_type(model.trace("a")["a"])  # Tensor
reveal_type(model.trace("a"))  # Trace
reveal_type(model.trace(["a", "b"]))  # list[Trace]
reveal_type(model.trace("a", target="b"))  # PairTrace
reveal_type(model.trace("a", target_ids=[1]))  # PairTrace
reveal_type(model.trace("a", window=5))  # WindowedTrace
reveal_type(model.trace(ids=[1]))  # Trace
reveal_type(model.generate("a", max_new_tokens=3, top_k=2))  # Generated
reveal_type(model.generate(["a"]))  # list[Generated]
reveal_type(regard.why(model, model.trace("a"), "a"))  # Why
reveal_type(model.trace("a").hidden_states[0])  # Tensor
reveal_type(regard.open("a"))  # Trace | PairTrace | list[Trace | PairTrace] | Calls
reveal_type(regard.TransformerConfig.gpt2().as_json())  # dict[str, str | int | float | bool | None]
reveal_type(regard.text.words.word_tokens("a", {}))  # list[Token]
"""

# What `mypy --strict` asks of a file, beyond this project's own settings.
STRICT = ", ".join(
    (
        "disallow-any-generics",
        "disallow-subclassing-any",
        "disallow-untyped-calls",
        "disallow-untyped-defs",
        "disallow-untyped-decorators",
        "warn-return-any",
        "extra-checks",
    )
)


def checked(tmp_path: Path, code: str) -> str:
    """What mypy says of some code of a user's, in a folder of its own."""
    file = tmp_path / "user.py"
    file.write_text(f"# mypy: {STRICT}\n{code}", encoding="utf-8")
    # Most of the time is the reading of torch and of the package, which `make lint` has just done: with its settings,
    # from its folder, its cache serves. What is stricter is said in the file alone.
    command = [sys.executable, "-m", "mypy", str(file)]
    settings = {**os.environ, "MYPYPATH": "src"}
    return subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False).stdout


@pytest.mark.long  # mypy reads torch and the package
def test_the_readmes_code_is_typed(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert blocks
    assert "Success" in (said := checked(tmp_path, "\n".join(blocks))), said


@pytest.mark.long  # mypy reads torch and the package
def test_what_a_users_editor_knows(tmp_path: Path) -> None:
    code = f'{REVEALED}model.trace("a", layres=3)\n'
    said = checked(tmp_path, code)
    errors = [line for line in said.splitlines() if "error:" in line]
    assert "Unexpected keyword argument" in "".join(errors)
    last = 1 + len(code.splitlines())  # below the line of settings
    assert {line.split(":")[1] for line in errors} == {str(last)}, said
    found = [re.sub(r"[\w.]+\.(\w+)", r"\1", line) for line in re.findall(r'Revealed type is "(.*)"', said)]
    assert found == re.findall(r"#\s(.*)$", REVEALED, re.M)
