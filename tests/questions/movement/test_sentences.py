"""Where texts move a word, told where a cosine leaves neutral sentences' range; what its plane shows, word for word."""

from dataclasses import replace
from typing import Any

import pytest

from regard.explain.texts.occurrences import Reference
from regard.explain.texts.summary import summarise
from regard.explain.vectors.movement import LeftOut, Movement, Tried
from regard.explain.vectors.neutral import Control, Neutral
from regard.models.control import trace_control
from regard.questions.movement.sentences import (
    arrows,
    axes,
    left_out,
    movement_curves_title,
    movement_findings,
    nearness,
    not_drawn,
    not_held,
    plane_sentences,
    plane_title,
)
from regard.questions.see.sentences import findings
from tests.support.summaries import bare_summary

HELD = "nearer here is nearer in all 12 dimensions (has the larger cosine)."
RIGHT = Tried([0, 1, 2], False, 4, 0, None)
WORDS = ["river", "money", "loan", "deposit"]


@pytest.fixture(scope="module")
def seen(minilm, bank):
    """The articles' two sentences, against the neutral ones."""
    return summarise(bank, "bank", references=minilm.trace(WORDS), control=trace_control(minilm, bank, "bank"))


def test_the_articles_pair(seen) -> None:
    """The river text moves the word; the money text, in which money falls from 0.40 to 0.29, does nothing to it."""
    sentences = movement_findings(seen)
    assert len(seen.control.sentences) == 39
    assert sentences[0].startswith(
        "Text 1 moves “bank” towards “river” (cosine 0.48; in 39 neutral sentences 0.29 to 0."
    )
    assert "away from “loan” (0.32; " in sentences[0]
    assert sentences[1:] == [
        "In text 2 “bank” is not told apart from a neutral sentence by any of 4 words.",
        "Between the texts “river” differs most: 0.48 in text 1, 0.32 in text 2.",
    ]
    assert all(sentence in findings(seen) for sentence in sentences)
    assert not any("nearest" in each or "Before and after" in each for each in findings(seen))


def test_without_neutral_sentences_it_is_not_told(seen) -> None:
    reason = "Whether a text moves “bank” is not told: "
    without = replace(seen, neutral=[], control=None)
    assert movement_findings(without)[0] == f"{reason}there are no neutral sentences to hold it against."
    refused = replace(seen, neutral=[], control=Control([], "3 of 3 neutral sentences have “bank”, 12 are needed", []))
    assert movement_findings(refused)[0] == f"{reason}3 of 3 neutral sentences have “bank”, 12 are needed."
    assert movement_findings(replace(seen, references=[])) == []


def test_one_text_and_one_word(seen) -> None:
    one = replace(seen, occurrences=seen.occurrences[:1], texts=seen.texts[:1],
                  references=[Reference("river", "1", 0.25, 0.4849, [0.4849])])  # fmt: skip
    neutral = [Neutral("river", 39, [0.34], [0.29], [0.4849])]
    assert movement_findings(replace(one, neutral=neutral)) == [
        "In the text “bank” is not told apart from a neutral sentence: “river” 0.48, there 0.29 to 0.48."
    ]
    # 0.4849 is larger than 0.4848, but both are shown as 0.48: what is said is what can be seen
    close = [Neutral("river", 39, [0.34], [0.29], [0.4848])]
    assert "not told apart" in movement_findings(replace(one, neutral=close))[0]
    low = [Neutral("river", 39, [0.34], [0.29], [0.474])]
    assert movement_findings(replace(one, neutral=low)) == [
        "The text moves “bank” towards “river” (cosine 0.48; in 39 neutral sentences 0.29 to 0.47)."
    ]


def test_an_occurrence_of_other_tokens_is_not_told(seen) -> None:
    other = replace(seen, control=replace(seen.control, otherwise=["2"]))
    assert movement_findings(other)[1] == (
        "Whether text 2 moves “bank” is not told: there “bank” is of other tokens than in the neutral sentences."
    )


def on_plane(beside: tuple[str, ...] = (), sentences: int = 0, **changes: Any) -> Any:
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
    return on_plane(("river", "money"), 12, **(own | changes))


def test_what_near_means_on_it() -> None:
    assert nearness(on_plane().movement) == f"Along a path, from a start, and between paths at one layer: {HELD}"
    assert nearness(on_plane(words=[[(0.0, 0.0)], None]).movement) == f"Seen from each state: {HELD}"
    assert nearness(ends().movement) == f"Seen from each ◆, from each ★ and from ○: {HELD}"
    assert nearness(ends(neutral=None).movement) == f"Seen from each ◆ and from each ★: {HELD}"
    assert nearness(on_plane(states=[]).movement) is None


def test_what_is_drawn() -> None:
    assert plane_title(on_plane()) == (
        "The path of “bank” through the layers: in, it enters layer 0; n, it leaves layer n; ★, its end"
    )
    assert plane_title(on_plane(states=[0, 2])) == "From where “bank” enters layer 0 (in) to its end (★)"
    said = "Where “bank” ends: ★ in a text; ○ in 12 neutral sentences, their mean; ◆ a reference word alone"
    assert plane_title(ends()) == said
    assert plane_title(ends(neutral=None)) == "Where “bank” ends: ★ in a text; ◆ a reference word alone"
    assert plane_title(on_plane(states=[])) is None


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
    assert arrows(ends(neutral=None)) is arrows(on_plane()) is None


def test_which_plane_it_is() -> None:
    kept = "each of length 1: it keeps 75% of their variance."
    assert axes(on_plane()) == f"The plane is one through all states of “bank”, {kept}"
    assert axes(on_plane(states=[0, 2])) == f"The plane is one through the first and last states of “bank”, {kept}"
    assert axes(ends()) == f"The plane is one through where “river”, “money” and “bank” end, {kept}"


def test_what_is_not_held_is_not_drawn_and_why() -> None:
    wrong = Tried([0, 1, 2], False, 9, 2, "2 of 9 comparisons of near and far come out otherwise")
    both = [wrong, RIGHT]
    assert not_held(on_plane().movement) is None
    assert not_held(on_plane(states=[], tried=[wrong]).movement) == (
        "Only the curves are drawn, no plane: 2 of 9 comparisons of near and far come out otherwise."
    )
    said = not_held(on_plane(states=[0, 2], tried=both).movement)
    assert said is not None
    assert said.startswith("What is between the first state and the last is not drawn on the plane: 2 of 9 ")
    said = not_held(ends(neutral=None, tried=[Tried([2], True, 9, 2, wrong.disagreement), RIGHT]).movement)
    assert said is not None
    assert said.startswith("The neutral sentences are not drawn on the plane: 2 of 9 ")
    assert plane_sentences(on_plane(states=[], words=[None, None], tried=[wrong]))[0].startswith("Only the curves")


def test_the_curves_have_a_title() -> None:
    assert (
        movement_curves_title(on_plane())
        == "How near “bank” stays to itself as it enters layer 0: cosine, state by state"
    )
    said = "How near “bank” is to each reference word, both in the same layer (cosine)"
    assert movement_curves_title(ends(neutral=None)).startswith(said)
    assert movement_curves_title(on_plane(("river",))) == said
    assert movement_curves_title(ends()) == f"{said}; dotted: its mean in 12 neutral sentences, shaded: their range"


@pytest.mark.parametrize(
    ("kind", "of", "said"),
    [("word", "1b", "“the” 1b (31 ×)"), ("reference", "", "“the” as a text of its own (31 ×)")],
)
def test_what_is_left_out_has_its_length(kind: str, of: str, said: str) -> None:
    out = LeftOut(kind, "the", of, 31.4)
    assert left_out(out) == said
    line = f"Not on the plane, for massive activations (length of a state, × the median): {said}."
    assert not_drawn(on_plane(left_out=[out]).movement) == line
    assert not_drawn(on_plane().movement) is None
