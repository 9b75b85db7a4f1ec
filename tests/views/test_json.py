import json
from pathlib import Path

from regard.questions.map.whole import matrix
from regard.views.json import write_json


def test_a_matrix_is_written_on_one_line(bank, tmp_path: Path) -> None:
    write_json(matrix(bank[0], 1).to_json(), tmp_path / "a.json")
    written = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert written.count("\n") == 1
    assert json.loads(written)["format"] == "regard map"
