"""Settings from the command line: which of file, --set and --steps counts, and what a value is."""

from pathlib import Path
from typing import Any

import pytest

from regard.errors import RegardError
from regard.train.verb import set_option_value, setting_changes


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-2", -2), ("1e-3", 1e-3), ("True", True), ("false", False), ("NONE", None), ("words", "words")],
)
def test_a_value_as_it_was_meant(text: str, value: Any) -> None:
    found = set_option_value(text)
    assert (type(found), found) == (type(value), value)


def test_the_later_counts(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"layers": 3, "heads": 5, "steps": 11}')
    assert setting_changes(file, [" heads = 7 ", "tokenizer=words"], 13) == {
        "layers": 3, "heads": 7, "tokenizer": "words", "steps": 13,
    }  # fmt: skip
    assert setting_changes(None, ["steps=13"], 13) == {"steps": 13}
    assert setting_changes(None, [], None) == {}


@pytest.mark.parametrize(
    ("settings", "steps", "says"),
    [
        (["layers"], None, "--set 'layers': expected NAME=VALUE"),
        (["=3"], None, "--set '=3': expected NAME=VALUE"),
        (["steps=11"], 13, "--steps 13 and --set steps=11: pass only one of them"),
    ],
)
def test_what_is_refused(settings: list[str], steps: int | None, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        setting_changes(None, settings, steps)
