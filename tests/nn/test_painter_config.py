"""A painter's config: kept as JSON and read back, and refused where no painter can be made of it."""

import pytest

from regard import RegardError
from regard.nn.painter_config import PainterConfig
from tests.support.own_models import no_checks_of_annotations

__all__ = ["no_checks_of_annotations"]  # the fixture


def test_json_there_and_back() -> None:
    config = PainterConfig(vocabulary=17, length=10, patch=2, values="contextual")
    assert PainterConfig.from_json(config.as_json()) == config
    assert config.grid == 8


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"patch": 3}, "patch: given 3, needs a size that divides the 16 pixels"),
        ({"values": "deep"}, "values: given 'deep', needs 'plain' or 'contextual'"),
        ({"heads": 0}, "heads: given 0, needs 1 or more"),
        ({"heads": 3}, "d_model: given 64, needs to be a multiple of the 3 heads"),
        ({"length": 1.5}, "length: given 1.5, needs a whole number"),
    ],
)
def test_what_cannot_be(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        PainterConfig(**({"vocabulary": 17, "length": 10} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"regard": "transformer"}, "c.json: regard is 'transformer', needs 'painter'"),
        ({"version": 2}, "c.json has format version 2, this regard reads 1"),
        ({"colour": 3}, "c.json: 'colour' is no entry of a painter's config"),
        ({"patch": 5}, "c.json: patch: given 5"),
    ],
)
def test_files_that_are_none(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        PainterConfig.from_json(PainterConfig(vocabulary=17, length=10).as_json() | changes, "c.json")


def test_a_missing_entry_is_named() -> None:
    content = PainterConfig(vocabulary=17, length=10).as_json()
    del content["side"]
    with pytest.raises(RegardError, match="'side' is missing"):
        PainterConfig.from_json(content)
