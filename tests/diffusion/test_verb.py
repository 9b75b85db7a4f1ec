"""`regard paint`: printed, drawn, as a page and as JSON; bad input in one line."""

import json
from pathlib import Path

import pytest

from tests.support import in_one_process
from tests.support.browser import BUILT

BUILT_PAGE = pytest.mark.skipif(not BUILT.exists(), reason="the page is not built: make page")


@BUILT_PAGE
@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_paints_in_every_medium(tmp_path: Path) -> None:
    pytest.importorskip("diffusers", reason="the extra diffusion is not installed")
    from tests.support import pipelines

    pipelines.stable_diffusion().save_pretrained(tmp_path / "tiny")
    files = ["--figure", "p.png", "--html", "p.html", "--json", "p.json", "--csv", "p.csv"]
    calls = [
        ["paint", "tiny", "a cat on the mat", "--steps", "2", *files],
        ["paint", "tiny", "a cat", "--steps", "0"],
        ["paint", "tiny", ""],
        ["paint", "tiny", "a cat", "--figure", "p.gif"],
        ["paint", "tiny"],
        ["paint", "gone", "a cat"],
    ]
    (code, shown, error), *refused = in_one_process(tmp_path, calls)
    assert code == 0, error
    assert "cat" in shown
    content = json.loads((tmp_path / "p.json").read_text("utf-8"))
    assert content["format"] == "regard paint prompt"
    assert content["texts"] == ["a cat on the mat"]
    assert len(content["findings"]) == 3
    assert (tmp_path / "p.png").stat().st_size > 10_000
    assert "mean of all steps" in (tmp_path / "p.html").read_text("utf-8")
    assert len((tmp_path / "p.csv").read_text("utf-8").splitlines()) == 1 + 7 * 8 * 8
    for (code, _, error), says in zip(
        refused,
        (
            "--steps: got 0, expected 1 to 500",
            "text is empty",
            "--figure: cannot write 'p.gif'",
            "Missing argument 'PROMPT'",
            "'gone' is not a diffusers pipeline: pass a folder with model_index.json",
        ),
        strict=True,
    ):
        assert code == 2
        assert says in error
