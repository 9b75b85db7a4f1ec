"""Explain the plane of a word's path through the layers: what is drawn, what distances mean, what is left out.

Each sentence is true of every point that is drawn.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from regard.display.panels import Curve, Curves, Number, Panel, Point, Scatter
from regard.display.sentences import Template, sentences
from regard.explain.texts.curves import curves
from regard.explain.texts.summary import Summary
from regard.explain.vectors.movement import LeftOut, Movement
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
MOST = 12  # reference words, occurrences, and pairs of occurrences that are drawn
MARKED = 10  # states of a path that are marked, of more every so many-th


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


def way_panels(summary: Summary, first: Sequence[str] = ()) -> tuple[list[Panel], list[Panel]]:
    """Draw how near the word is to each reference word; then its plane, and how alike its occurrences are.

    first: labels of the occurrences that come first if there are too many to draw all.
    """
    assert summary.movement is not None
    drawn = list(dict.fromkeys([*first, *(each.label for each in summary.occurrences)]))[:MOST]
    lines = _cosines_to_references(summary, drawn)
    notes = [f"{len(lines)} of {count} reference words are drawn" for count in [len(curves(summary))] if count > MOST]
    if len(drawn) < len(summary.occurrences):
        notes.append(f"{len(drawn)} of {len(summary.occurrences)} occurrences are drawn")
    plane = _plane(summary, summary.movement, drawn)
    said = [f"{each}; --json has all." for each in notes] + ([] if plane else plane_sentences(summary))
    lines[0] = replace(lines[0], caption=" ".join(said))
    return [*lines], [*plane, *_occurrences(summary, drawn)]


def _cosines_to_references(summary: Summary, drawn: Sequence[str]) -> list[Curves]:
    """One panel for each reference word, or one for the word itself as it enters layer 0."""
    panels = []
    for each in curves(summary)[:MOST]:
        labels = [occurrence.label for occurrence in summary.occurrences]
        series = [_line(label, path) for label, path in zip(labels, each.paths, strict=True) if label in drawn]
        if (neutral := each.neutral) is not None:
            name = f"{neutral.sentences} neutral sentences, mean and range"
            series.append(_line(name, neutral.mean, neutral.low, neutral.high))
        other = "itself as it enters layer 0" if each.word is None else quoted(each.word)
        panels.append(_layers(f"Cosine of {quoted(summary.word or '')} to {other}, by layer", series))
    return panels


def _occurrences(summary: Summary, drawn: Sequence[str]) -> list[Curves]:
    """The cosines of every two occurrences."""
    pairs = [pair for pair in summary.pairs if sum(value is not None for value in pair.hidden_states) > 1]
    shown = [pair for pair in pairs if pair.a in drawn and pair.b in drawn][:MOST]
    left = f" ({len(shown)} of {len(pairs)} pairs)" if len(shown) < len(pairs) else ""
    series = [_line(f"{pair.a} and {pair.b}", pair.hidden_states) for pair in shown]
    return (
        [_layers(f"Cosine between the {quoted(summary.word or '')} vectors, by layer{left}", series)] if series else []
    )


def _line(
    name: str, values: Sequence[Number], low: Sequence[Number] | None = None, high: Sequence[Number] | None = None
) -> Curve:
    return Curve(name, range(-1, len(values) - 1), values, low=low, high=high)


def _layers(title: str, series: Sequence[Curve]) -> Curves:
    return Curves(name=title, title=title, x="after layer (−1: input of layer 0)", y="cosine", series=series)


def _plane(summary: Summary, moved: Movement, drawn: Sequence[str]) -> list[Scatter]:
    """The plane with each path, the reference words, and the neutral sentences' mean; nothing if there is none."""
    if not moved.states:
        return []
    points: list[Point] = []
    paths = [path if each.label in drawn else None for each, path in zip(summary.occurrences, moved.words, strict=True)]
    neutral = sum(len(path) for path in paths if path)  # the number of its point
    step = -(-len(moved.states) // MARKED)
    for each, path, leaves in zip(summary.occurrences, paths, moved.leaves, strict=True):
        for n, (x, y) in enumerate(path or []):
            after = len(points) - 1 if n else neutral if leaves and moved.neutral else None
            mark = "in" if n == 0 else str(moved.states[n] - 1) * (n % step == 0)
            points.append(Point(x, y, f"★ {each.label}" if n == len(moved.states) - 1 else mark, each.label, after))
    if moved.neutral is not None:
        points.append(Point(*moved.neutral, "○", "neutral sentences"))
    for word, place in zip(dict.fromkeys(each.word for each in summary.references), moved.references, strict=True):
        if place is not None:
            points.append(Point(*place, f"◆ {word}", "reference words"))
    title, said = plane_title(summary) or "", " ".join(plane_sentences(summary))
    return [Scatter(name="Plane", title=title, caption=said, x="", y="", points=points, equal=True)]
