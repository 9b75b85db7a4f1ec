"""How alike the occurrences of a word are, layer by layer: a line for each two of them."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from regard.explain.texts.summary import Summary
from regard.text.quoting import quoted, short
from regard.views.figures.elements.canvas import spread
from regard.views.figures.elements.colours import line_style
from regard.views.figures.elements.labels import characters

MOST = 12  # reference words, and pairs of occurrences, that are drawn


def named(summary: Summary, first: Sequence[str] = ()) -> list[str]:
    """The labels of the occurrences that are told apart: all, or of more than twelve those of `first` before others."""
    labels = [each.label for each in summary.occurrences]
    chosen = set([*first, *(label for label in labels if label not in first)][:MOST])
    return [label for label in labels if label in chosen]


def has_pairs(summary: Summary) -> bool:
    """Whether two occurrences have states to compare, layer by layer."""
    return any(len([c for c in pair.hidden_states if c is not None]) > 1 for pair in summary.pairs)


def paint_pairs(axes: Axes, summary: Summary, labels: Sequence[str]) -> None:
    """For each two occurrences a line: the cosine of their states from layer to layer; of many, twelve pairs."""
    pairs = [pair for pair in summary.pairs if pair.a in labels and pair.b in labels][:MOST]
    left = f" ({len(pairs)} of {len(summary.pairs)} pairs)" if len(pairs) < len(summary.pairs) else ""
    ends: list[tuple[float, int, str]] = []
    for nth, pair in enumerate(pairs):
        colour, dashes = line_style(nth) if len(pairs) > 1 else ("#444444", "-")
        held = [(n, c) for n, c in enumerate(pair.hidden_states) if c is not None]
        axes.plot(*zip(*held, strict=True), dashes, marker="o", markersize=3, color=colour, linewidth=1.4,
                  gid=f"pair {pair.a} {pair.b}")  # fmt: skip
        ends.append((held[-1][1], nth, f"{pair.a}–{pair.b}: {held[-1][1]:z.2f}"))
    count = max(len(pair.hidden_states) for pair in pairs)
    low, high = axes.get_ylim()
    ends.sort()
    rows = spread([round(1000 * (value - low) / (high - low)) for value, _, _ in ends], 75.0, 1000.0)
    for at, (value, nth, text) in zip(rows, ends, strict=True):
        colour = line_style(nth)[0] if len(pairs) > 1 else "#444444"
        axes.annotate(text, (count - 1, value), xytext=(count - 1 + 0.03 * count, low + (high - low) * at / 1000),
                      fontsize=7, va="center", color=colour, annotation_clip=False)  # fmt: skip
    layer_axis(axes, count)
    axes.set_ylabel("cosine", fontsize=8)
    plain(axes)
    axes.set_xlim(-0.05 * count, count - 1 + 0.027 * count * max(characters(text) for _, _, text in ends))
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
