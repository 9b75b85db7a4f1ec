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


def test_choices_are_the_calls_of_each_text_or_pair() -> None:
    choices = widget.calls_on_page(page())
    assert list(choices) == ["source", "target", "target → source"]
    assert choices["target"] == [PageCall(0, 0, tuple(range(5)), 2, 2, True), PageCall(2, 0, (1, 7), 2, 2, True)]
    assert choices["target → source"][1] == PageCall(0, 1, tuple(range(7)), 2, 3, False)
    assert [widget.text_name_on_page(page(), n) for n in (1, 3, 5)] == ["source", "target", "target → source"]
    assert widget.chosen_call(choices, "target", 2) == choices["target"][1]
    assert widget.chosen_call(choices, "target", 1) is None
    assert widget.chosen_call(choices, "target → source", 0, 1) == choices["target → source"][1]


def test_the_tokens_of_a_side_are_those_of_the_queries_or_the_keys() -> None:
    cross = widget.calls_on_page(page())["target → source"][0]
    assert (cross.tokens("gives"), cross.tokens("receives")) == (2, 3)


def test_numbers_are_checked_and_counted_from_the_end() -> None:
    choices = widget.calls_on_page(page())
    assert [widget.check_layer_on_page(choices, "target", layer) for layer in (0, 2, -1, -2)] == [0, 2, 2, 0]
    assert [widget.check_number("token", token, range(5), "it") for token in (0, 4, -1, None)] == [0, 4, 4, None]
    assert [widget.check_number("head", head, range(5), "it") for head in (0, 4, -1, None)] == [0, 4, 4, None]
    assert [widget.check_number("head", head, (1, 7), "it") for head in (1, 7, -1, -2)] == [1, 7, 7, 1]


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (
            lambda c: widget.check_text_on_page(c, "text"),
            "text 'text' is not on the page: it has 'source', 'target', 'targ",
        ),
        (lambda c: widget.check_layer_on_page(c, "target", 1), "layer 1 is not on the page: 'target' has layers 0, 2"),
        (
            lambda c: widget.check_layer_on_page(c, "source", 2),
            "layer 2 is not on the page: 'source' has layers 0 to 1",
        ),
        (lambda c: widget.check_layer_on_page(c, "source", True), "layer True is not on the page"),
        (
            lambda c: widget.check_number("head", 5, range(5), "layer 0"),
            "head 5 is not on the page: layer 0 has heads 0 to 4",
        ),
        (lambda c: widget.check_number("head", -2, (0,), "it"), "head -2 is not on the page: it has head 0 alone"),
        (lambda c: widget.check_number("head", 3, (1, 7), "it"), "head 3 is not on the page: it has heads 1, 7"),
        (lambda c: widget.check_number("token", 0, range(0), "it"), "token 0 is not on the page: it has no tokens"),
        (lambda c: widget.check_side("takes"), "side: given 'takes', needs 'gives' or 'receives'"),
        (lambda c: widget.check_view("map", ["tokens", "panel 0"]), "it has 'tokens', 'panel 0'$"),
        (lambda c: widget.check_view("panel x", []), "view 'panel x' is not on the page: it has 'overview', 'map'"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(check: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says) as raised:
        check(widget.calls_on_page(page()))
    assert "\n" not in str(raised.value)
