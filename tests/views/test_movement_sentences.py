"""What is said of the plane of a word's path: word for word, of planes that hold and of planes that do not."""

from typing import Any

import pytest

from regard.explain.vectors.movement import LeftOut, Movement
from regard.views.movement_sentences import agreement, axes_sentence, left_out, not_drawn


def moved(**changes: Any) -> Movement:
    """A movement of two paths on a plane that keeps 0.5 and 0.25 of the variance."""
    path = [(0.0, 0.0), (1.0, 1.0)]
    parts: dict[str, Any] = {
        "share": (0.5, 0.25), "words": [path, path], "references": [], "tokens": [], "fitted": [], "width": 12,
        "compared": 4, "wrong": 0, "disagreement": None, "left_out": [],
    }  # fmt: skip
    return Movement(**(parts | changes))


def test_near_on_the_plane_is_near_or_it_is_said() -> None:
    held = "nearer here is nearer in all 12 dimensions (has the larger cosine)"
    assert agreement(moved()) == f"Of a path's states and its start: {held}"
    three = moved(words=[[(0.0, 0.0)], [(1.0, 0.0)], [(0.0, 1.0)]])
    assert agreement(three) == f"Of a path's states and its start, and two ★: {held}"
    assert agreement(moved(fitted=["river"])) == f"Seen from each ★ and from each ◆: {held}"
    assert agreement(moved(compared=0)) is None
    wrong = moved(wrong=1, disagreement="1 of 4 \x1b comparisons")
    assert agreement(wrong) == r"Not to be read off as it stands: 1 of 4 \x1b comparisons"


def test_which_plane_it_is() -> None:
    assert axes_sentence("bank", moved()) == (
        "the plane through all states of “bank”, each of length 1: 50% + 25% of their variance; dots: the texts' "
        "tokens at the end, whose distances may differ"
    )
    assert axes_sentence("bank", moved(fitted=["river", "money"])) == (
        "the plane through the final states of river, money and “bank”, each of length 1: 50% + 25% of their variance"
    )


@pytest.mark.parametrize(
    ("kind", "of", "said"),
    [("token", "2", "“the” in text 2 (31 ×)"), ("word", "1b", "“the” 1b (31 ×)"),
     ("reference", "", "“the” as a text of its own (31 ×)")],
)  # fmt: skip
def test_what_is_not_drawn_has_its_length(kind: str, of: str, said: str) -> None:
    out = LeftOut(kind, "the", of, 31.4)
    assert left_out(out) == said
    line = f"Not drawn, for massive activations (length of a state, × the median): {said}"
    assert not_drawn(moved(left_out=[out])) == line
    # beside reference words no token is drawn, whatever its length
    assert not_drawn(moved(left_out=[out], fitted=["river"])) == (None if kind == "token" else line)
    assert not_drawn(moved()) is None
