"""What can be chosen on a page: told by its data alone."""

from typing import Any

import pytest

from regard.errors import RegardError
from regard.web import widget


def page() -> dict[str, Any]:
    """An encoder on three tokens; a decoder on two, of layers 0 and 2; two calls of cross-attention."""
    calls = [{"queries": 0, "keys": 0}, {"queries": 0, "keys": 0}, {"queries": 1, "keys": 1}, {"queries": 1, "keys": 0}]
    return {"texts": [{"name": "source"}, {"name": "target"}], "calls": calls}


def test_calls_have_the_name_of_their_text_or_pair() -> None:
    data = page()
    calls = widget.calls_by_text(data)
    first, second, decoder, cross = data["calls"]
    assert calls == {"source": [first, second], "target": [decoder], "target → source": [cross]}


def test_numbers_are_checked_and_counted_from_the_end() -> None:
    assert [widget.check_choice("token", token, range(5), "it") for token in (0, 4, -1)] == [0, 4, 4]
    assert [widget.check_choice("head", head, (1, 7), "it") for head in (1, 7, -1, -2)] == [1, 7, 7, 1]


@pytest.mark.parametrize(
    ("what", "number", "numbers", "says"),
    [
        ("layer", 1, (0, 2), "layer: got 1, it has 0, 2"),
        ("layer", True, (0, 1), "layer: got True"),
        ("head", 5, range(5), "head: got 5, it has 0 to 4"),
        ("head", -2, (0,), "head: got -2, it has 0"),
        ("token", 0, range(0), "token: got 0, it has none"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(what: str, number: int, numbers: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says) as raised:
        widget.check_choice(what, number, numbers, "it")
    assert "\n" not in str(raised.value)
