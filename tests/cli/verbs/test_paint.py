"""`regard paint`: printed, drawn, as a page and as JSON; bad input in one line."""

import json
from pathlib import Path

from regard.nn.folder import save_model
from tests.questions.paint.test_answer import small
from tests.support import in_one_process

LINE = "a seven top left, a two bottom right"


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
    assert [each[0] for each in refused] == [2] * 5
    for each, says in zip(
        refused,
        (
            "TEXT 'a cat': 'cat' is none of a painter's words",
            'needs a run and a line: regard paint RUN "a seven',
            "is no folder of a model of ours: it has no config.json",
            "no folder 'gone': needs a run, which regard train --painter writes",
            "--samples: given 0, needs 1 to 500",
        ),
        strict=True,
    ):
        assert says in each[2]
