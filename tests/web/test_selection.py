"""What can be chosen on a page: told by its data alone."""

from typing import Any

import pytest

from regard.errors import RegardError
from regard.web import widget
from regard.web.widget import PageCall


def page() -> dict[str, Any]:
    """An encoder on three tokens; a decoder on two, of layers 0 and 2; two calls of cross-attention."""

    def text(name: str, count: int) -> dict[str, Any]:
        return {"name": name, "tokens": {"text": ["a"] * count}}

    def call(
        layer: int, queries: int, keys: int, heads: int, nth: int = 0, numbers: list[int] | None = None
    ) -> dict[str, Any]:
        return {
            "layer": layer, "nth": nth, "queries": queries, "keys": keys, "heads": heads, "head_numbers": numbers,
        }  # fmt: skip

    return {
        "texts": [text("source", 3), text("target", 2)],
        "calls": [call(0, 0, 0, 4), call(1, 0, 0, 4), call(0, 1, 1, 5), call(2, 1, 1, 2, numbers=[1, 7]),
                  call(0, 1, 0, 6), call(0, 1, 0, 7, nth=1)],
    }  # fmt: skip


def test_calls_have_the_name_of_their_text_or_pair() -> None:
    calls = widget.calls_on_page(page())
    assert [call.text for call in calls] == ["source"] * 2 + ["target"] * 2 + ["target → source"] * 2
    assert calls[2] == PageCall("target", 0, 0, tuple(range(5)), 2, 2, True)
    assert calls[3] == PageCall("target", 2, 0, (1, 7), 2, 2, True)
    assert calls[5] == PageCall("target → source", 0, 1, tuple(range(7)), 2, 3, False)


def test_numbers_are_checked_and_counted_from_the_end() -> None:
    assert [widget.check_number("token", token, range(5), "it") for token in (0, 4, -1, None)] == [0, 4, 4, None]
    assert [widget.check_number("head", head, (1, 7), "it") for head in (1, 7, -1, -2)] == [1, 7, 7, 1]


@pytest.mark.parametrize(
    ("what", "number", "numbers", "says"),
    [
        ("layer", 1, (0, 2), "layer 1 is not on the page: it has layers 0, 2"),
        ("layer", True, (0, 1), "layer True is not on the page"),
        ("head", 5, range(5), "head 5 is not on the page: it has heads 0 to 4"),
        ("head", -2, (0,), "head -2 is not on the page: it has head 0 alone"),
        ("token", 0, range(0), "token 0 is not on the page: it has no tokens"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(what: str, number: int, numbers: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says) as raised:
        widget.check_number(what, number, numbers, "it")
    assert "\n" not in str(raised.value)
