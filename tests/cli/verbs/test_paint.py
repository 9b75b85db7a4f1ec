"""`regard paint`: printed, drawn, as a page and as JSON; bad input in one line."""

import json
from pathlib import Path

import pytest

from regard.nn.folder import save_model
from tests.questions.paint.test_answer import small
from tests.support import in_one_process
from tests.support.browser import BUILT

BUILT_PAGE = pytest.mark.skipif(not BUILT.exists(), reason="the page is not built: make page")
LINE = "a seven top left, a two bottom right"


@BUILT_PAGE
def test_a_line_is_painted_in_every_medium(tmp_path: Path) -> None:
    save_model(tmp_path / "painter", small())
    files = ["--figure", "p.png", "--html", "p.html", "--json", "p.json", "--csv", "p.csv"]
    (tmp_path / "none").mkdir()
    calls = [
        ["paint", "painter", LINE, "--samples", "2", *files],
        ["paint", "painter", "a cat"],
        ["paint", "painter"],
        ["paint", "none", LINE],
        ["paint", "gone", LINE],
        ["paint", "painter", LINE, "--samples", "0"],
        ["paint", "painter", LINE, "--steps", "3"],
    ]
    (code, shown, error), *refused = in_one_process(tmp_path, calls)
    assert (code, error) == (0, ""), error
    assert "What stands in the two corners" in shown
    assert "<start>" in shown
    content = json.loads((tmp_path / "p.json").read_text("utf-8"))
    assert content["findings"][0].startswith("Of 2 pictures, ")
    assert (tmp_path / "p.png").stat().st_size > 10_000
    assert "As written" in (tmp_path / "p.html").read_text("utf-8")
    assert len((tmp_path / "p.csv").read_text("utf-8").splitlines()) == 1 + 20 * 2 * 16 * 10
    assert [each[0] for each in refused] == [2] * 6
    for each, says in zip(
        refused,
        (
            "TEXT 'a cat': 'cat' is none of a painter's words",
            'needs a run and a line: regard paint RUN "a seven',
            "is no folder of a model of ours: it has no config.json",
            "no folder 'gone': needs a run, which regard train --painter writes",
            "--samples: given 0, needs 1 to 500",
            "--steps: a run of regard train --painter paints in 20",
        ),
        strict=True,
    ):
        assert says in each[2]


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
    ]
    (code, shown, error), *refused = in_one_process(tmp_path, calls)
    assert code == 0, error
    assert "Where each word is looked at most" in shown
    content = json.loads((tmp_path / "p.json").read_text("utf-8"))
    assert content["format"] == "regard paint prompt"
    assert content["texts"] == ["a cat on the mat"]
    assert " is looked at most at place " in content["findings"][0]
    assert (tmp_path / "p.png").stat().st_size > 10_000
    assert "mean of all steps" in (tmp_path / "p.html").read_text("utf-8")
    assert len((tmp_path / "p.csv").read_text("utf-8").splitlines()) == 1 + 7 * 8 * 8
    for (code, _, error), says in zip(
        refused,
        ("--steps: given 0, needs 1 to 500", "text is empty", "--figure: given 'p.gif', of a pipeline needs"),
        strict=True,
    ):
        assert code == 2
        assert says in error
