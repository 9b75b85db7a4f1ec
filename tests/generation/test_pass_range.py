"""Where the rows and keys of a pass stand in the whole text, and what of an ablation is in them."""

import pytest

from regard.attention.ablation import EdgeAblation, HeadAblation
from regard.generation.pass_range import PassRange, within_pass


@pytest.mark.parametrize(
    ("size", "past", "count", "expected"),
    [
        (13, 0, 13, PassRange(0, 13, 0, 0, 13)),  # prefill
        (14, 13, 1, PassRange(13, 1, 13, 0, 14)),  # a dynamic cache
        (5, 13, 1, PassRange(13, 1, 4, 9, 5)),  # a sliding one: keys 9 to 13
        (31, 13, 1, PassRange(13, 1, 13, 0, 14)),  # a static buffer that is not full
    ],
)
def test_where_keys_stand(size: int, past: int, count: int, expected: PassRange) -> None:
    assert PassRange.of(size, past, count) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (PassRange(0, 7, 0, 0, 7), (4, 1)),  # prefill
        (PassRange(4, 1, 4, 0, 5), (0, 1)),  # a step
        (PassRange(4, 1, 3, 1, 4), (0, 0)),  # a sliding cache that has dropped token 0
        (PassRange(4, 1, 2, 2, 3), None),  # and token 1
        (PassRange(5, 1, 5, 0, 6), None),  # another query's step
        (PassRange(0, 4, 0, 0, 4), None),
    ],
)
def test_the_part_of_an_edge_in_a_pass(place: PassRange, expected: tuple[int, int] | None) -> None:
    part = within_pass(EdgeAblation(queries=[4], keys=[1]), place)
    assert expected == (None if part is None else (part.queries[0], part.keys[0]))
    head = HeadAblation(heads=[3])
    assert within_pass(head, place) is head


def test_edges_are_numbered_anew() -> None:
    edge = EdgeAblation(queries=[3, 4, 5, 9], keys=[1, 2, 4, 8], heads=[2])
    found = within_pass(edge, PassRange(4, 2, 3, 2, 4))  # rows 4 and 5, keys 2 to 5
    assert isinstance(found, EdgeAblation)
    assert (list(found.queries), list(found.keys), list(found.heads)) == ([0, 1], [0, 2], [2])
