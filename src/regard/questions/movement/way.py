"""A word's way through the layers as panels of a picture: cosines to reference words, the plane, its occurrences."""

from collections.abc import Sequence
from dataclasses import replace

from regard.display.panels import Curve, Curves, Number, Panel, Point, Scatter
from regard.explain.texts.curves import curves
from regard.explain.texts.summary import Summary
from regard.explain.vectors.movement import Movement
from regard.questions.movement.sentences import plane_sentences, plane_title
from regard.text.quoting import quoted

MOST = 12  # reference words, occurrences, and pairs of occurrences that are drawn
MARKED = 10  # states of a path that are marked, of more every so many-th


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
