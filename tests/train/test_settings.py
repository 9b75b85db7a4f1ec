"""Settings of a run: their values, the learning rate, and what may change when a run goes on."""

import math
from pathlib import Path
from typing import Any

import pytest

from regard.errors import RegardError
from regard.train.settings import Settings, read_training_settings, with_changes


def test_the_rate_rises_and_falls_as_a_cosine() -> None:
    settings = Settings(steps=110, warmup=10, rate=1.0, least_rate=0.1)
    assert [settings.learning_rate(n) for n in (0, 4, 9)] == pytest.approx([0.1, 0.5, 1.0])
    assert settings.learning_rate(10) == pytest.approx(1.0)
    assert settings.learning_rate(60) == pytest.approx(0.55)
    assert settings.learning_rate(35) == pytest.approx(0.1 + 0.45 * (1 + math.cos(math.pi / 4)))
    assert settings.learning_rate(110) == settings.learning_rate(999) == pytest.approx(0.1)


def test_a_run_may_go_on_for_longer_but_not_as_another() -> None:
    settings = Settings()
    assert settings.differences(with_changes(settings, {"steps": 7, "keep": 5, "rate": 1e-4, "least_rate": 1e-5})) == []
    assert settings.differences(with_changes(settings, {"layers": 3, "seed": 5, "steps": 7})) == ["layers", "seed"]
    with pytest.raises(RegardError, match="settings: 'layres' isn't a setting"):
        with_changes(settings, {"layres": 3})


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    "changes",
    [
        {"layers": 0},
        {"block": 1},
        {"steps": 0},
        {"layers": 2.5},
        {"layers": True},
        {"tokenizer": "letters"},
        {"rate": "a"},
    ],
)
def test_values_that_cannot_be(changes: dict[str, Any]) -> None:
    with pytest.raises(RegardError, match=next(iter(changes))):
        Settings(**changes)


def test_as_json_is_what_makes_it_again() -> None:
    settings = Settings.for_pairs(layers=5)
    again = Settings(**settings.as_json())  # type: ignore[arg-type]
    assert again == settings
    assert again.layers == 5


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('layers = 3\ntokenizer = "words"\n')
    (tmp_path / "a.json").write_text('{"layers": 3, "tokenizer": "words"}')
    for name in ("a.toml", "a.json"):
        assert read_training_settings(tmp_path / name) == {"layers": 3, "tokenizer": "words"}
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "cut.toml").write_text("layers = ")
    for name, says in (
        ("none.toml", "cannot be read"),
        ("list.json", "got list, expected names with values"),
        ("cut.toml", "isn't valid TOML or JSON"),
    ):
        with pytest.raises(RegardError, match=says):
            read_training_settings(tmp_path / name)
