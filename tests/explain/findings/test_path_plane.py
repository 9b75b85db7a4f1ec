"""What is said of the plane of a word's movement: word for word, of planes that are drawn and of such that are not."""

from typing import Any

import pytest

from regard.explain.findings.path_plane import (
    arrows,
    axes,
    curves_title,
    left_out,
    nearness,
    not_drawn,
    not_held,
    plane_sentences,
    plane_title,
)
from regard.explain.vectors.movement import LeftOut, Movement, Tried
from tests.support.summaries import bare_summary

HELD = "nearer here is nearer in all 12 dimensions (has the larger cosine)."
RIGHT = Tried([0, 1, 2], False, 4, 0, None)


def seen(beside: tuple[str, ...] = (), sentences: int = 0, **changes: Any) -> Any:
    """A summary of two paths of three states on a plane that keeps 0.5 and 0.25 of the variance."""
    path = [(0.0, 0.0), (1.0, 1.0), (1.0, 2.0)]
    parts: dict[str, Any] = {
        "share": (0.5, 0.25), "states": [0, 1, 2], "words": [path, path], "references": [], "neutral": None,
        "leaves": [False, False], "fitted": [], "width": 12, "tried": [RIGHT], "left_out": [],
    }  # fmt: skip
    moved = Movement(**(parts | changes))
    return bare_summary("bank", [str(n + 1) for n in range(len(moved.words))], moved, beside, sentences)


def ends(**changes: Any) -> Any:
    """Beside two reference words the ends alone, with the neutral mean."""
    own = {"states": [2], "words": [[(1.0, 1.0)], [(0.0, 1.0)]], "references": [(0.0, 0.0), (2.0, 2.0)],
           "neutral": (0.5, 0.5), "fitted": ["river", "money"], "leaves": [True, False]}  # fmt: skip
    return seen(("river", "money"), 12, **(own | changes))


def test_what_near_means_on_it() -> None:
    assert nearness(seen().movement) == f"Along a path, from a start, and between paths at one layer: {HELD}"
    assert nearness(seen(words=[[(0.0, 0.0)], None]).movement) == f"Seen from each state: {HELD}"
    assert nearness(ends().movement) == f"Seen from each ◆, from each ★ and from ○: {HELD}"
    assert nearness(ends(neutral=None).movement) == f"Seen from each ◆ and from each ★: {HELD}"
    assert nearness(seen(states=[]).movement) is None


def test_what_is_drawn() -> None:
    assert plane_title(seen()) == (
        "The path of “bank” through the layers: in, it enters layer 0; n, it leaves layer n; ★, its end"
    )
    assert plane_title(seen(states=[0, 2])) == "From where “bank” enters layer 0 (in) to its end (★)"
    said = "Where “bank” ends: ★ in a text; ○ in 12 neutral sentences, their mean; ◆ a reference word alone"
    assert plane_title(ends()) == said
    assert plane_title(ends(neutral=None)) == "Where “bank” ends: ★ in a text; ◆ a reference word alone"
    assert plane_title(seen(states=[])) is None


def test_where_no_arrow_leads() -> None:
    assert arrows(ends()) == (
        "No arrow leads to 2: its cosines are within the neutral sentences' range, to each reference word."
    )
    assert arrows(ends(leaves=[True, True])) == (
        "An arrow leads to each end: its cosine to some reference word is outside the neutral sentences' range."
    )
    assert arrows(ends(leaves=[False, False])) == (
        "No arrow leads to 1 and 2: their cosines are within the neutral sentences' range, to each reference word."
    )
    many = ends(leaves=[False] * 20, words=[[(1.0, 1.0)]] * 20)
    assert "10, 11 and 12 and 8 more: their cosines" in (arrows(many) or "")
    assert arrows(ends(neutral=None)) is arrows(seen()) is None


def test_which_plane_it_is() -> None:
    kept = "each of length 1: it keeps 75% of their variance."
    assert axes(seen()) == f"The plane is one through all states of “bank”, {kept}"
    assert axes(seen(states=[0, 2])) == f"The plane is one through the first and last states of “bank”, {kept}"
    assert axes(ends()) == f"The plane is one through where “river”, “money” and “bank” end, {kept}"


def test_what_is_not_held_is_not_drawn_and_why() -> None:
    wrong = Tried([0, 1, 2], False, 9, 2, "2 of 9 comparisons of near and far come out otherwise")
    both = [wrong, RIGHT]
    assert not_held(seen().movement) is None
    assert not_held(seen(states=[], tried=[wrong]).movement) == (
        "Only the curves are drawn, no plane: 2 of 9 comparisons of near and far come out otherwise."
    )
    said = not_held(seen(states=[0, 2], tried=both).movement)
    assert said is not None
    assert said.startswith("What is between the first state and the last is not drawn on the plane: 2 of 9 ")
    said = not_held(ends(neutral=None, tried=[Tried([2], True, 9, 2, wrong.disagreement), RIGHT]).movement)
    assert said is not None
    assert said.startswith("The neutral sentences are not drawn on the plane: 2 of 9 ")
    assert plane_sentences(seen(states=[], words=[None, None], tried=[wrong]))[0].startswith("Only the curves")


def test_the_curves_have_a_title() -> None:
    assert curves_title(seen()) == "How near “bank” stays to itself as it enters layer 0: cosine, state by state"
    said = "How near “bank” is to each reference word, each state to the same state: cosine"
    assert curves_title(ends(neutral=None)).startswith(said)
    assert curves_title(seen(("river",))) == said
    assert curves_title(ends()) == f"{said}; dotted: the mean of 12 neutral sentences, in their range"


@pytest.mark.parametrize(
    ("kind", "of", "said"),
    [("word", "1b", "“the” 1b (31 ×)"), ("reference", "", "“the” as a text of its own (31 ×)")],
)
def test_what_is_left_out_has_its_length(kind: str, of: str, said: str) -> None:
    out = LeftOut(kind, "the", of, 31.4)
    assert left_out(out) == said
    line = f"Not on the plane, for massive activations (length of a state, × the median): {said}."
    assert not_drawn(seen(left_out=[out]).movement) == line
    assert not_drawn(seen().movement) is None
