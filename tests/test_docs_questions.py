"""What the pages of docs/questions claim holds when their code runs: `expression  # what it is`, line by line.

Pages on SmolLM2 have their code in plain blocks, since the docs are built where it is not: they run where
REGARD_SMOLLM2 names its folder.
"""

import ast
import os
from pathlib import Path
from typing import Any

import pytest

import regard
from tests.support import ROOT, run_in_process
from tests.support.pages import code_blocks

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2 = os.environ.get("REGARD_SMOLLM2", "")
FOLDER = ROOT / "docs" / "questions"
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in FOLDER.glob("*.md"))
REAL = pytest.mark.real


def needs_smollm2(page: str) -> bool:
    return NAME in (ROOT / page).read_text("utf-8")


def claims(block: str) -> list[tuple[str, Any]]:
    """The statements of a block, each with the value that the comment behind or below it says, None for none."""
    lines = [*block.splitlines(), ""]
    found = []
    for node in ast.parse(block).body:
        source = ast.get_source_segment(block, node) or ""
        last = node.end_lineno or 0
        behind = lines[last - 1].encode()[node.end_col_offset or 0 :].decode().strip()
        said = behind or (lines[last] if lines[last].startswith("# ") else "")
        value = None
        if said and isinstance(node, ast.Expr):
            try:
                value = ast.literal_eval(said.removeprefix("# "))
            except (SyntaxError, ValueError):
                value = None  # words
        found.append((source, value))
    return found


def holds(got: Any, said: Any) -> bool:
    """Whether a value is what is said of it: numbers to the decimals that are written."""
    if hasattr(got, "tolist"):
        got = got.tolist()
    if isinstance(said, float):
        decimals = len(repr(said).partition(".")[2])
        return abs(float(got) - said) <= 0.51 * 10**-decimals
    if isinstance(said, list | tuple):
        return len(got) == len(said) and all(holds(a, b) for a, b in zip(got, said, strict=True))
    return bool(got == said)


def test_a_claim_is_read_and_held() -> None:
    block = "x = [0.123, 2]\nx  # [0.12, 2]\nx[0]  # what it is\nlen(\n    x\n)\n# 2\nx[1]\n\n# 2\n"
    assert claims(block) == [
        ("x = [0.123, 2]", None), ("x", [0.12, 2]), ("x[0]", None), ("len(\n    x\n)", 2), ("x[1]", None),
    ]  # fmt: skip
    assert holds([0.123, 2], [0.12, 2])
    assert not holds([0.126, 2], [0.12, 2])
    assert not holds([0.12, 3], [0.12, 2])
    assert holds(("a", 0.5), ("a", 0.5))


def test_every_question_is_in_the_navigation_and_on_the_front_page() -> None:
    navigation, front = ((ROOT / name).read_text("utf-8") for name in ("mkdocs.yml", "docs/index.md"))
    assert len(PAGES) >= 4
    for page in PAGES:
        name = page.removeprefix("docs/")
        title = (ROOT / page).read_text("utf-8").splitlines()[0].removeprefix("# ")
        assert f"      - {title}: {name}\n" in navigation
        assert f"[{title}]({name})" in front


@pytest.mark.parametrize("page", [pytest.param(each, marks=REAL if needs_smollm2(each) else ()) for each in PAGES])
def test_what_it_says_holds(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = code_blocks(page, "python")
    if needs_smollm2(page):
        if not list(Path(SMOLLM2 or "none").glob("*.gguf")):
            pytest.skip(f"no GGUF file in REGARD_SMOLLM2={SMOLLM2!r}")
        blocks = [block for block in code_blocks(page, "text") if not block.startswith("regard ")]
        load = regard.load
        monkeypatch.setattr(regard, "load", lambda name=None, **more: load(SMOLLM2 if name == NAME else name, **more))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    checked = 0
    for block in blocks:
        for source, said in claims(block):
            if said is None:
                exec(compile(source, page, "exec"), names)
                continue
            got = eval(compile(source, page, "eval"), names)
            assert holds(got, said), f"{page}: {source!r}: it is {got!r}"
            checked += 1
    assert checked >= 3


@REAL
@pytest.mark.parametrize("page", [page for page in PAGES if needs_smollm2(page)])
def test_its_commands_run(page: str, tmp_path: Path) -> None:
    """Those on SmolLM2; the others are run by test_docs_commands.py."""
    import shlex

    if not list(Path(SMOLLM2 or "none").glob("*.gguf")):
        pytest.skip(f"no GGUF file in REGARD_SMOLLM2={SMOLLM2!r}")
    text = "\n".join(block for block in code_blocks(page, "text") if block.startswith("regard "))
    for line in text.replace("\\\n", " ").splitlines():
        arguments = [SMOLLM2 if word == NAME else word for word in shlex.split(line)[1:]]
        if "--html" in arguments and not (ROOT / "src" / "regard" / "web" / "built" / "page.js").exists():
            continue
        done = run_in_process(tmp_path, arguments)
        assert done.returncode == 0, done.stderr
