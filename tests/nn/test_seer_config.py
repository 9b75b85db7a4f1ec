"""A seer's config: kept as JSON and read back, and refused where no seer can be made of it."""

import pytest

from regard import RegardError
from regard.nn.folder import config_of_json
from regard.nn.seer_config import SeerConfig


def test_json_there_and_back() -> None:
    config = SeerConfig(vocabulary=17, length=67, patch=2, image=5)
    assert config_of_json(config.as_json(), "c.json") == config
    assert (config.grid, config.vision_config.patch_size) == (8, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"patch": 3}, "patch: given 3, needs a size that divides the 16 pixels of a side"),
        ({"patch": 0}, "patch: given 0, needs a size"),
        ({"side": 2}, "patch: given 4, needs a size that divides the 2 pixels"),
        ({"kind": "encoder"}, "kind: given 'encoder', 'learned'; needs a decoder of learned positions"),
        ({"positions": "rotary"}, "kind: given 'decoder', 'rotary'; needs a decoder"),
        ({"heads": 3}, "d_model: given 128, needs to be a multiple of the 3 heads"),
        ({"asks": -1}, "asks: given -1, needs to be an id of the vocabulary, 0 to 16"),
        ({"image": 17}, "image: given 17, needs to be an id of the vocabulary, 0 to 16"),
    ],
)
def test_what_cannot_be(changes: dict[str, object], message: str) -> None:
    content = SeerConfig(vocabulary=17, length=20).as_json() | changes
    with pytest.raises(RegardError, match=f"c.json: {message}"):
        config_of_json(content, "c.json")
