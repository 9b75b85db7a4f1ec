"""Every walkthrough runs from nothing, asserts its own figures, and leaves files in its output folder alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT, SHARED

pytestmark = pytest.mark.long

RANKS = SHARED / "tokenizers"
FOLDER = ROOT / "docs" / "walkthroughs"
PICTURES = {
    "one_sentence": ["one_sentence_weights.png"],
    "river_and_finance": [f"river_and_finance_{name}.png" for name in ("bank", "finance", "river")],
    "formula": ["formula_heads.png", "formula_matrix.png"],
    "text_to_contextual": ["ate_heads.png", "bank_moves.png", "positions.png"],
}


def run(name: str, folder: Path, **extra: str) -> str:
    """What a walkthrough prints, run in an empty folder."""
    environment = {**os.environ, "REGARD_OUT": "here/out", **extra}
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py")],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_are_listed() -> None:
    assert sorted(PICTURES) == sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_runs_and_stays_in_its_folder(name: str, tmp_path: Path) -> None:
    told = run(name, tmp_path, TIKTOKEN_CACHE_DIR=os.environ.get("TIKTOKEN_CACHE_DIR", str(tmp_path / "none")))
    left = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert left == [Path("here/out") / picture for picture in PICTURES[name]]
    assert all((tmp_path / path).stat().st_size > 5000 for path in left)
    lines = (FOLDER / f"{name}.py").read_text("utf-8").splitlines()
    assert 100 <= len(lines) <= 250
    assert told.strip()
    if name == "formula" and "NOT CHECKED HERE" in told:
        pytest.skip("everything ran but cl100k_base, whose ranks cannot be had here (network, or TIKTOKEN_CACHE_DIR)")


@pytest.mark.shared
@pytest.mark.skipif(not RANKS.is_dir(), reason=f"no folder {RANKS} (REGARD_SHARED names another place)")
def test_cl100k_base_where_its_ranks_are(tmp_path: Path) -> None:
    pytest.importorskip("tiktoken")
    assert "NOT CHECKED HERE" not in run("formula", tmp_path, TIKTOKEN_CACHE_DIR=str(RANKS))


@pytest.mark.parametrize(("figure", "other"), [("0.2912", "0.2914"), ("11.1466", "11.1468")])
def test_a_wrong_figure_fails(figure: str, other: str, tmp_path: Path) -> None:
    source = (FOLDER / "one_sentence.py").read_text("utf-8")
    assert figure in source
    changed = tmp_path / "changed.py"
    changed.write_text(source.replace(figure, other), "utf-8")
    done = subprocess.run([sys.executable, str(changed)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "AssertionError" in done.stderr
