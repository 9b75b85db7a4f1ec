"""Cosines layer by layer as lines: of a word to each reference word, a small panel each, and of its occurrences."""

from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from regard.display.elements.canvas import or_nan, places_spread_apart
from regard.display.elements.colours import line_style
from regard.display.elements.labels import drawn_text_width
from regard.display.elements.slide import Row
from regard.explain.texts.curves import Curve, curves
from regard.explain.texts.summary import Occurrence, Summary
from regard.explain.wording import number
from regard.questions.movement.sentences import movement_curves_title
from regard.text.quoting import quoted, short, visible

ACROSS = 5  # panels side by side
HIGH = 2.5  # inches of a panel
GREY = "#777777"
LETTERS = 0.14  # inches that a name at the end of a line needs
AROUND = 0.75  # and what stands above and below a panel on a slide, beyond the room that matplotlib leaves
MOST = 12  # reference words, and pairs of occurrences, that are drawn


def row(summary: Summary, first: Sequence[str] = ()) -> Row:
    """How near the word is to each reference word, layer by layer, with a title and what the lines are."""
    told = named(summary, first)
    count = min(MOST, len(curves(summary)))

    def put(figure: FigureBase, place: Any) -> None:
        panels(figure, place, summary, told)
        figure.suptitle("\n".join(above(summary, told)), fontsize=9.5)
        legend(figure, summary, told)

    high = 0.2 * (len(above(summary, told)) + -(-len(told) // 2))
    return Row(0.3 + high + HIGH * -(-count // ACROSS), put, "how near the word is to each other one, layer by layer")


def panels(figure: FigureBase, place: Any, summary: Summary, told: Sequence[str]) -> list[Axes]:
    """Draw a panel for each reference word, a line an occurrence, the neutral sentences as a dotted mean in its range.

    Of more than twelve reference words twelve are drawn. What a line is stands at its end.

    figure, place: of these the part that is drawn into. told: the labels of the occurrences that are drawn.
    """
    shown = curves(summary)[:MOST]
    columns = min(ACROSS, len(shown))
    grid = place.subgridspec(-(-len(shown) // columns), columns)
    made: list[Axes] = []
    for nth, curve in enumerate(shown):
        axes = figure.add_subplot(grid[nth // columns, nth % columns], sharey=made[0] if made else None)
        made.append(axes)
        _panel(axes, curve, summary.occurrences, told)
        if nth % columns:
            axes.tick_params(labelleft=False)
        else:
            axes.set_ylabel("cosine", fontsize=8)
    for axes, curve in zip(made, shown, strict=True):
        _names(axes, curve, summary.occurrences, told)  # once the scale of all is known
    return made


def above(summary: Summary, told: Sequence[str]) -> list[str]:
    """What the panels are, and what is not in them, in lines."""
    count, lines = len(curves(summary)), [visible(movement_curves_title(summary))]
    if count > MOST:
        lines.append(f"{MOST} of {count} reference words are drawn; --json has all")
    if len(told) < len(summary.occurrences):
        lines.append(f"{len(told)} of {len(summary.occurrences)} occurrences are drawn; --json has all")
    return lines


def legend(
    figure: FigureBase, summary: Summary, told: Sequence[str], where: Literal["upper", "lower"] = "lower"
) -> None:
    """Say what the lines are: each occurrence with the words around it, at the lower or the upper edge.

    told: the labels of the occurrences that are drawn. where: at which edge.
    """
    handles = []
    for nth, each in enumerate(summary.occurrences):
        if each.label in told:
            colour, dashes = line_style(nth)
            line: dict[str, Any] = {"color": colour, "linestyle": dashes, "marker": "o", "markersize": 3}
            handles.append(Line2D([], [], label=around(summary, each), **line))
    figure.legend(
        handles=handles,
        fontsize=8,
        frameon=False,
        loc="outside upper center" if where == "upper" else "outside lower center",
        ncols=min(2, len(handles)),
    )


def around(summary: Summary, occurrence: Occurrence) -> str:
    """An occurrence with the words around it."""
    text = summary.texts[occurrence.text]
    start, end = max(0, occurrence.start - 36), occurrence.end + 24
    cut = ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
    return f"{occurrence.label}  {short(cut, 72)}"


def named(summary: Summary, first: Sequence[str] = ()) -> list[str]:
    """The labels of the occurrences that are told apart: all, or of more than twelve those of `first` before others."""
    labels = [each.label for each in summary.occurrences]
    chosen = set([*first, *(label for label in labels if label not in first)][:MOST])
    return [label for label in labels if label in chosen]


def has_movement_of_pairs(summary: Summary) -> bool:
    """Whether two occurrences have states to compare, layer by layer."""
    return any(len([c for c in pair.hidden_states if c is not None]) > 1 for pair in summary.pairs)


def paint_pairs(axes: Axes, summary: Summary, labels: Sequence[str]) -> None:
    """For each two occurrences a line: the cosine of their states from layer to layer; of many, twelve pairs."""
    pairs = [pair for pair in summary.pairs if pair.a in labels and pair.b in labels][:MOST]
    left = f" ({len(pairs)} of {len(summary.pairs)} pairs)" if len(pairs) < len(summary.pairs) else ""
    ends: list[tuple[float, str, str]] = []
    for nth, pair in enumerate(pairs):
        colour, dashes = line_style(nth) if len(pairs) > 1 else ("#444444", "-")
        held = [(n, c) for n, c in enumerate(pair.hidden_states) if c is not None]
        axes.plot(*zip(*held, strict=True), dashes, marker="o", markersize=3, color=colour, linewidth=1.4,
                  gid=f"pair {pair.a} {pair.b}")  # fmt: skip
        ends.append((held[-1][1], colour, f"{pair.a}–{pair.b}: {number(held[-1][1])}"))
    count = max(len(pair.hidden_states) for pair in pairs)
    name_ends(axes, ends, count - 1, 0.03 * count)
    layer_axis(axes, count)
    axes.set_ylabel("cosine", fontsize=8)
    plain(axes)
    axes.set_xlim(-0.05 * count, count - 1 + 0.027 * count * max(drawn_text_width(text) for _, _, text in ends))
    axes.set_title(f"How alike the {quoted(short(summary.word or ''))} are, layer by layer{left}", fontsize=9.5)


def layer_axis(axes: Axes, count: int) -> None:
    """The states of a model across."""
    step = max(1, -(-count // 14))
    ticks = list(range(0, count, step))
    axes.set_xticks(ticks, ["in" if n == 0 else str(n - 1) for n in ticks])
    axes.tick_params(labelsize=7)
    axes.set_xlabel("in: enters layer 0; n: leaves layer n", fontsize=8)


def plain(axes: Axes) -> None:
    """Take away the lines above and on the right."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _panel(axes: Axes, curve: Curve, occurrences: Sequence[Occurrence], told: Sequence[str]) -> None:
    """The lines of one panel."""
    name = "itself as it enters layer 0" if curve.word is None else short(curve.word, 24)
    if curve.neutral is not None:
        axes.fill_between(range(len(curve.neutral.mean)), or_nan(curve.neutral.low), or_nan(curve.neutral.high),
                          color=GREY, alpha=0.25, linewidth=0, gid=f"range {name}")  # fmt: skip
        axes.plot(or_nan(curve.neutral.mean), ":", color=GREY, linewidth=1.6, gid=f"neutral {name}")
    for nth, (each, values) in enumerate(zip(occurrences, curve.paths, strict=True)):
        if each.label in told:
            colour, dashes = line_style(nth)
            axes.plot(or_nan(values), dashes, marker="o", markersize=3, color=colour, linewidth=1.6,
                      gid=f"curve {each.label} {name}")  # fmt: skip
    axes.set_title(name, fontsize=9.5)
    layer_axis(axes, len(curve.paths[0]))
    plain(axes)


def _names(axes: Axes, curve: Curve, occurrences: Sequence[Occurrence], told: Sequence[str]) -> None:
    """What each line is, and its last number, at its end."""
    ends = [
        (values[-1], line_style(nth)[0], f"{each.label} {number(values[-1])}")
        for nth, (each, values) in enumerate(zip(occurrences, curve.paths, strict=True))
        if each.label in told and values[-1] is not None
    ]
    if curve.neutral is not None and curve.neutral.mean[-1] is not None:
        ends.append((curve.neutral.mean[-1], GREY, f"neutral {number(curve.neutral.mean[-1])}"))
    last = len(curve.paths[0]) - 1
    name_ends(axes, ends, last, 0.05 * last)
    axes.set_xlim(-0.05 * last, last * 1.4)


def name_ends(axes: Axes, ends: list[tuple[float, str, str]], last: int, beyond: float) -> None:
    """Write names (value, colour, text) beyond where lines end, moved apart by as much as a line of letters needs."""
    low, high = axes.get_ylim()
    inches = max(LETTERS * len(ends), axes.get_window_extent().height / axes.figure.dpi - AROUND)
    ends = sorted(ends, key=lambda each: each[0])
    places = [round(1000 * (value - low) / (high - low)) for value, _, _ in ends]
    rows = places_spread_apart(places, max(75.0, 1000 * LETTERS / inches), 1000.0)
    for at, (value, colour, text) in zip(rows, ends, strict=True):
        axes.annotate(text, (last, value), xytext=(last + beyond, low + (high - low) * at / 1000), fontsize=7,
                      va="center", color=colour, annotation_clip=False)  # fmt: skip
