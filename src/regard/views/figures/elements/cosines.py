"""How alike states are, as numbers beside the path picture: the word and reference words, and its occurrences."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from regard.explain.texts.summary import Summary
from regard.explain.vectors.similarity import cosine
from regard.views.figures.elements.canvas import spread
from regard.views.figures.elements.colours import line_style
from regard.views.figures.elements.labels import characters
from regard.views.terminal.layout import short

MOST = 12  # reference words, and pairs of occurrences, that are drawn


def named(summary: Summary, first: Sequence[str] = ()) -> list[str]:
    """The labels of the occurrences that are told apart: all, or of more than twelve those of `first` before others."""
    labels = [each.label for each in summary.occurrences]
    chosen = set([*first, *(label for label in labels if label not in first)][:MOST])
    return [label for label in labels if label in chosen]


def parts(summary: Summary) -> list[Any]:
    """The painters of what there is to show: cosines to reference words, of occurrences, or of one to its own start."""
    found: list[Any] = []
    if any(each.learned is not None for each in summary.references):
        found.append(paint_references)
    if any(len([c for c in pair.hidden_states if c is not None]) > 1 for pair in summary.pairs):
        found.append(paint_pairs)
    return found or [paint_starts]


def paint(figure: FigureBase, place: Any, summary: Summary, first: Sequence[str] = ()) -> None:
    """Draw them, one above the other. first: the occurrences that come before others where not all are drawn."""
    told = named(summary, first)
    drawn = parts(summary)
    inner = place.subgridspec(len(drawn), 1)
    for at, each in enumerate(drawn):
        each(figure.add_subplot(inner[at]), summary, told)


def paint_references(axes: Axes, summary: Summary, labels: Sequence[str]) -> None:
    """For each reference word and occurrence an arrow: from the cosine of learned embeddings to that of contextual."""
    words = list(dict.fromkeys(each.word for each in summary.references))[:MOST]
    lane = 0.8 / len(labels)
    for each in summary.references:
        if each.word not in words or each.occurrence not in labels or each.learned is None:
            continue
        nth = [o.label for o in summary.occurrences].index(each.occurrence)
        at = words.index(each.word) + lane * (labels.index(each.occurrence) - (len(labels) - 1) / 2)
        colour, _ = line_style(nth)
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (each.contextual, at), (each.learned, at), arrowprops=arrow)
        axes.plot([each.learned, each.contextual], [at, at], "o", color=colour, markersize=3, markevery=[0],
                  gid=f"cosines {each.occurrence} {each.word}")  # fmt: skip
        right = each.contextual >= each.learned
        axes.annotate(f"{each.occurrence}: {each.contextual:.2f}", (each.contextual, at), textcoords="offset points",
                      xytext=(6 if right else -6, 0), ha="left" if right else "right", va="center", fontsize=7,
                      color=colour)  # fmt: skip
    axes.set_yticks(range(len(words)), [short(word, 16) for word in words], fontsize=8)
    axes.set_ylim(len(words) - 0.5, -0.5)
    for line in range(1, len(words)):
        axes.axhline(line - 0.5, color="#dddddd", linewidth=0.6)
    _sides(axes, [c for each in summary.references for c in (each.learned or 0.0, each.contextual)])
    axes.set_xlabel("cosine: ● of learned embeddings, ▶ of contextual ones", fontsize=8)
    axes.set_title(f"“{short(summary.word or '')}” and the reference words, before and after", fontsize=9.5)


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
        ends.append((held[-1][1], nth, f"{pair.a}–{pair.b}: {held[-1][1]:.2f}"))
    count = max(len(pair.hidden_states) for pair in pairs)
    low, high = axes.get_ylim()
    ends.sort()
    rows = spread([round(1000 * (value - low) / (high - low)) for value, _, _ in ends], 75.0, 1000.0)
    for at, (value, nth, text) in zip(rows, ends, strict=True):
        colour = line_style(nth)[0] if len(pairs) > 1 else "#444444"
        axes.annotate(text, (count - 1, value), xytext=(count - 1 + 0.03 * count, low + (high - low) * at / 1000),
                      fontsize=7, va="center", color=colour, annotation_clip=False)  # fmt: skip
    _layers(axes, count)
    axes.set_xlim(-0.05 * count, count - 1 + 0.027 * count * max(characters(text) for _, _, text in ends))
    axes.set_title(f"How alike the “{short(summary.word or '')}” are, layer by layer{left}", fontsize=9.5)


def paint_starts(axes: Axes, summary: Summary, labels: Sequence[str]) -> None:
    """For each occurrence a line: the cosine of every state to the one that enters layer 0."""
    for nth, occurrence in enumerate(summary.occurrences):
        if occurrence.label not in labels:
            continue
        states = [None if s is None else torch.tensor(s, dtype=torch.float64) for s in occurrence.hidden_states]
        start = states[0]
        if start is None:
            continue
        held = [(n, cosine(start, state)) for n, state in enumerate(states) if state is not None]
        colour, dashes = line_style(nth)
        axes.plot(*zip(*held, strict=True), dashes, marker="o", markersize=3, color=colour, linewidth=1.4,
                  gid=f"start {occurrence.label}")  # fmt: skip
        axes.annotate(f"{held[-1][1]:.2f}", held[-1], xytext=(5, 0), textcoords="offset points", fontsize=7,
                      va="center", color=colour)  # fmt: skip
    _layers(axes, len(summary.occurrences[0].hidden_states))
    axes.set_title(f"“{short(summary.word or '')}” after each layer beside itself as it enters", fontsize=9.5)


def _layers(axes: Axes, count: int) -> None:
    """The states of a model across, the cosine up."""
    step = max(1, -(-count // 14))
    ticks = list(range(0, count, step))
    axes.set_xticks(ticks, ["in" if n == 0 else str(n - 1) for n in ticks])
    axes.tick_params(labelsize=7)
    axes.set_xlabel("in: enters layer 0; n: leaves layer n", fontsize=8)
    axes.set_ylabel("cosine", fontsize=8)
    axes.margins(x=0.08)
    _plain(axes)


def _sides(axes: Axes, values: Sequence[float]) -> None:
    room = 0.22 * (max(values) - min(values)) or 0.1
    axes.set_xlim(min(values) - room, max(values) + room)
    axes.tick_params(axis="x", labelsize=7)
    axes.tick_params(axis="y", length=0)
    _plain(axes)


def _plain(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
