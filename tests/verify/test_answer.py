"""The answer: verdicts, sentences, rows and the table."""

import json
import math
from pathlib import Path

import pytest

from regard.verify.check import FAILED, NOT_TESTED, PASSED, Check, Result
from tests.said.reading import numbers_in, plain_and_few

RESULTS = [
    Result("weights", 2e-6, 1e-5, "attentions[0]"),
    Result("statistics", 2e-5, 1e-5, "entropy"),
    Result("regions", math.inf, 0.0, "TypeError: broke"),
    Result("generation", where="no language head"),
]


def test_verdicts_are_in_sentences_rows_and_json(tmp_path: Path) -> None:
    found = Check("model", "torch", RESULTS)
    assert [each["verdict"] for each in found.rows()] == [PASSED, FAILED, FAILED, NOT_TESTED]
    assert not found.holds
    assert Check("model", "torch", RESULTS[::3]).holds
    first, failed, left = found.findings()
    assert numbers_in(first) == ["1", "3"]
    assert "statistics and regions" in failed
    assert "generation" in left
    plain_and_few(found.findings())
    found.to_json(tmp_path / "check.json")
    data = json.loads((tmp_path / "check.json").read_text("utf-8"))
    assert (data["holds"], data["rows"][3]["where"]) == (False, "no language head")


@pytest.mark.usefixtures("some_page")
def test_the_table_is_on_the_first_screen_and_is_on_the_page(tmp_path: Path) -> None:
    found = Check("model", "torch", RESULTS)
    (table,) = found.panels()
    assert table.screen
    assert table.rows[0] == ["weights", "2.0e-06", "1.0e-05", PASSED, ""]  # type: ignore[attr-defined]
    assert table.rows[1][3:] == [FAILED, "entropy"]  # type: ignore[attr-defined]
    assert table.rows[3] == ["generation", "", "", NOT_TESTED, "no language head"]  # type: ignore[attr-defined]
    assert found.save_page(tmp_path / "check.html") > 0
