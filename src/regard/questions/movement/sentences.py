"""Explain the plane of a word's path through the layers: what is drawn, what distances mean, what is left out.

Each sentence is true of every point that is drawn.
"""

from typing import Any

from regard.display.sentences import Template, sentences
from regard.explain.texts.summary import Summary
from regard.explain.vectors.movement import LeftOut
from regard.explain.wording import listed, quoted
from regard.text.quoting import short, some_of

MAX_PLANE_SENTENCES = 5
MAX_NAMED_ENDS = 12
TABLE: list[list[Template]] = [
    [
        ("only the curves are drawn. {no_plane}.", None),
        ("the neutral sentences are not drawn. {first_tried}.", lambda n: n["without_neutral"]),
        ("only the first and the last state are drawn. {first_tried}.", None),
    ],
    [("massive activations are not drawn: {left_out}.", None)],
    [
        ("from each ◆ to ★ and ○, and from each ★ and ○ to ◆, nearer means a larger cosine in all {width} dimensions.",
         lambda n: n["to_references"] and n["neutral"]),
        ("from each ◆ to ★, and from each ★ to ◆, nearer means a larger cosine in all {width} dimensions.",
         lambda n: n["to_references"]),
        ("from each state, a nearer state has the larger cosine in all {width} dimensions.",
         lambda n: n["paths"] == 1),
        ("along a path, from its start, and between paths at the same layer, nearer points have larger cosines in all "
         "{width} dimensions.", None),
    ],
    [
        ("an arrow leads to each end, because its cosine to some reference word is outside the neutral range.",
         lambda n: n.get("neutral") and not n["inside"]),
        ("no arrow leads to ends within the neutral range: {inside}.", lambda n: n.get("neutral")),
    ],
    [("the plane keeps {kept:%} of the variance of {of}.", None)],
]  # fmt: skip


def missing(word: str, why: str) -> str:
    """Say that a word's path is not shown."""
    return f"The path of {quoted(short(word))} through the layers is not shown: {why}."


def movement_curves_title(summary: Summary) -> str:
    """Name what the curves beside the plane show."""
    word = quoted(summary.word or "")
    if not summary.references:
        return f"Cosine of {word} to the vector that enters layer 0, after each layer"
    title = f"Cosine of {word} to each reference word, both in the same layer"
    if not summary.neutral:
        return title
    return f"{title}. Dotted: the mean in {summary.neutral[0].sentences} neutral sentences. Shaded: their range"


def plane_title(summary: Summary) -> str | None:
    """Name what the plane shows; None where there is none."""
    moved, word = summary.movement, quoted(summary.word or "")
    if moved is None or not moved.states:
        return None
    if moved.fitted:
        neutral = f", ○ mean of {summary.neutral[0].sentences} neutral sentences" if moved.neutral else ""
        return f"Where {word} ends: ★ in each text{neutral}, ◆ each reference word alone"
    if len(moved.states) == 2:
        return f"{word} before layer 0 (in) and after the last layer (★)"
    return f"The path of {word} through the layers: in = before layer 0, n = after layer n, ★ = the end"


def plane_sentences(summary: Summary) -> list[str]:
    """Return what a reader of the plane has to know, or why there is none."""
    moved = summary.movement
    if moved is None:
        return []
    ends = [o.label for o, path in zip(summary.occurrences, moved.words, strict=True) if path]
    leaving = [o.label for o, far in zip(summary.occurrences, moved.leaves, strict=True) if far]
    reasons = [tried.disagreement or "No plane was found" for tried in moved.tried]
    numbers: dict[str, Any] = {
        "left_out": listed([left_out(each) for each in moved.left_out]) or None,
        "no_plane": reasons[-1] if reasons and not moved.states else None,
        "first_tried": reasons[0] if len(reasons) > 1 and moved.states else None,
        "without_neutral": bool(moved.tried) and moved.tried[0].neutral,
    }
    if moved.states:
        word = quoted(summary.word or "")
        own = "all states" if len(moved.states) > 2 else "the first and last states"
        fitted = f"the last vectors of {listed([*map(quoted, moved.fitted), word])}"
        numbers |= {
            "width": moved.width, "to_references": bool(moved.fitted), "neutral": moved.neutral is not None,
            "paths": len(ends), "kept": float(sum(moved.share)), "of": fitted if moved.fitted else f"{own} of {word}",
            "inside": some_of([label for label in ends if label not in leaving], MAX_NAMED_ENDS),
        }  # fmt: skip
    return sentences(TABLE, numbers, most=MAX_PLANE_SENTENCES)


def left_out(massive: LeftOut) -> str:
    """Name a massive activation, with the length of its state."""
    where = {"word": f" {massive.of}", "reference": ""}[massive.kind]
    return f"{quoted(massive.name)}{where} ({massive.times:.0f} times the median length)"
