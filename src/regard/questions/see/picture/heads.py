"""Draw many heads: what a word gives each token, one row a head, and the matrix of every head of every layer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from regard.display.elements.canvas import LABELS, Row, mark_names
from regard.display.elements.colours import FOLLOWED
from regard.display.elements.weight_cells import bare, frame, paint_weights, weight_bar, write_weights
from regard.explain.texts.highlights import Link, most_distinctive_link
from regard.explain.texts.summary import Occurrence, Summary
from regard.explain.weights.attended import check_heads
from regard.explain.weights.specific_weights import SpecificWeight, specific_weights
from regard.text.quoting import quoted, short, spelled
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace
from regard.trace.word_rows import gives

ACROSS = 12  # small pictures side by side
GAP = 0.12  # between two matrices, as a part of one
SHOWN = 24  # columns of a text of more than LABELS tokens: those that get most
OCCURRENCES = 8  # of a word in one text that are drawn
Large = tuple[Occurrence, SpecificWeight | None]  # an occurrence that is drawn large, and what is framed in it


class WordRows:
    """The rows of one occurrence in every layer that the trace holds: what its word gives each token, a row a head."""

    def __init__(self, summary: Summary, trace: Trace, occurrence: Occurrence, chosen: SpecificWeight | None) -> None:
        self.summary, self.trace, self.occurrence, self.chosen = summary, trace, occurrence, chosen
        word = occurrence.as_word()
        self.layers = {n: gives(trace.attention[n], word).cpu().double().numpy() for n in _held(trace)}
        self.sinks = {sink.token for sink in summary.sinks[occurrence.text]}

    def columns(self, layer: int) -> list[int]:
        """The tokens that are drawn: all, or of a long text those to which any head of the layer gives most."""
        size = len(self.trace.tokens)
        if size <= LABELS:
            return list(range(size))
        return sorted(np.argsort(-self.layers[layer].max(0), kind="stable")[:SHOWN].tolist())

    def large(self, figure: FigureBase, axes: Axes, layer: int, head: int | None) -> None:
        """Draw the rows of one layer, the mean of heads on top (or of one head alone); framed is the chosen weight.

        layer: whose rows. head: the one alone, None for all and their mean.
        """
        chosen = self.columns(layer)
        tokens, rows = [self.trace.tokens[n] for n in chosen], self.layers[layer]
        heads = list(range(len(rows))) if head is None else [head]
        values = rows[heads] if head is not None else np.concatenate([rows.mean(0, keepdims=True), rows])
        labels = [str(h) for h in heads] if head is not None else ["mean", *map(str, heads)]
        own = [at for at, n in enumerate(chosen) if not self.trace.tokens[n].special and n not in self.sinks]
        values = values[:, chosen]
        image = paint_weights(axes, values, own)
        write_weights(axes, values, own)
        size = 8 if len(tokens) <= 24 else 6
        names = [spelled(token.text, 16) for token in tokens]
        if len(chosen) < len(self.trace.tokens):
            names = [f"{name} {n}" for n, name in zip(chosen, names, strict=True)]
        axes.set_xticks(range(len(tokens)), names, rotation=50, ha="right", rotation_mode="anchor", fontsize=size)
        axes.set_yticks(range(len(values)), labels, fontsize=8 if len(values) <= 24 else 6)
        own_columns = {at for at, n in enumerate(chosen) if n in self.occurrence.tokens}
        if len(chosen) == len(self.trace.tokens):
            mark_names(axes, "x", tokens, own_columns, self.sinks)
        else:
            for at, label in enumerate(axes.get_xticklabels()):
                label.set_color(FOLLOWED if at in own_columns else "#999999" if at not in own else "black")
        best = self.chosen
        if best is not None and best.layer == layer and (head is None or best.head == head) and best.key in chosen:
            row = heads.index(best.head) + (head is None)
            frame(axes, row, chosen.index(best.key))
            axes.get_yticklabels()[row].set_color(FOLLOWED)
            axes.get_yticklabels()[row].set_fontweight("bold")
        axes.set_ylabel(f"head of layer {layer}", fontsize=8)
        axes.set_title(self._title(layer, chosen, values), fontsize=10)
        bare(axes)
        weight_bar(figure, image, axes, self.trace.tokens, self.sinks)

    def _title(self, layer: int, chosen: Sequence[int], values: Any) -> str:
        title = f"Attention from {self._named()} in layer {layer}, by head"
        if len(chosen) == len(self.trace.tokens):
            return title
        share, count = float(values.sum(1).mean()), len(self.trace.tokens)
        return f"{title}\nthe {len(chosen)} of {count} tokens with the largest weights ({share:.0%} of all attention)"

    def _named(self) -> str:
        label = f" ({self.occurrence.label})" if len(self.summary.occurrences) > 1 else ""
        return f"{quoted(short(self.occurrence.word))}{label}"

    def strip(self, figure: FigureBase, place: Any, start: int, shown: int) -> None:
        """Draw some layers' rows small, side by side."""
        parts = place.subgridspec(1, min(ACROSS, max(2, len(self.layers))))
        for at, layer in enumerate(list(self.layers)[start : start + ACROSS]):
            self._small(figure.add_subplot(parts[at]), layer, shown, first=at == 0)

    def grid(self, figure: FigureBase, place: Any, shown: int) -> None:
        """Draw every layer's rows small, on a grid."""
        across = math.ceil(math.sqrt(len(self.layers)))
        parts = place.subgridspec(-(-len(self.layers) // across), across)
        for at, layer in enumerate(self.layers):
            self._small(figure.add_subplot(parts[at // across, at % across]), layer, shown, first=at % across == 0)

    def _small(self, axes: Axes, layer: int, shown: int, *, first: bool) -> None:
        columns = self.columns(shown)
        own = [at for at, n in enumerate(columns) if not self.trace.tokens[n].special and n not in self.sinks]
        paint_weights(axes, self.layers[layer][:, columns], own)
        axes.set_xticks([])
        axes.set_yticks([])
        bare(axes, "black" if layer == shown else "#cccccc")
        title = f"layer {layer}" + (": large" if layer == shown else "")
        axes.set_title(title, fontsize=8, color="black" if layer == shown else "#777777")
        if first:
            axes.set_ylabel(f"{self._named()}\none row per head", fontsize=7, color="#777777")


def strip_rows(rows: WordRows, shown: int) -> list[Row]:
    """The small pictures of every layer."""
    height = min(2.4, max(1.2, 0.5 + 0.09 * max(len(each) for each in rows.layers.values())))
    return [
        Row(height, lambda figure, place, start=start: rows.strip(figure, place, start, shown))
        for start in range(0, len(rows.layers), ACROSS)
    ]


def stacked_heads_of_layers(trace: Trace) -> dict[int, Any]:
    """The dense weights (H, L, S) of every layer that a trace holds, of those whose keys are its tokens."""
    return {n: trace.attention[n].dense().double().cpu().numpy() for n in _held(trace)}


def paint_grid(axes: Axes, layers: dict[int, Any], own: Sequence[int], chosen: tuple[int, int] | None) -> AxesImage:
    """Draw the matrices (H, L, S) of some layers as one picture, in which they stand a part apart; chosen is framed.

    Returns the image of the coloured ones.
    """
    rows, size = next(iter(layers.values())).shape[1:]
    gap = max(1, round(GAP * size))
    heads = max(len(each) for each in layers.values())
    down, across = rows + gap, size + gap
    values = np.full((len(layers) * down - gap, heads * across - gap), np.nan)
    for i, each in enumerate(layers.values()):
        for h, matrix in enumerate(each):
            values[i * down : i * down + rows, h * across : h * across + size] = matrix
    coloured = [h * across + n for h in range(heads) for n in own]
    image = paint_weights(axes, values, set(coloured))
    axes.set_xticks([h * across + (size - 1) / 2 for h in range(heads)], map(str, range(heads)), fontsize=8)
    axes.set_yticks([i * down + (rows - 1) / 2 for i in range(len(layers))], map(str, layers), fontsize=8)
    axes.set_xlabel("head", fontsize=8)
    axes.set_ylabel("layer", fontsize=8)
    bare(axes)
    for i in range(len(layers)):
        for h in range(heads):
            mine = chosen == (list(layers)[i], h)
            axes.add_patch(Rectangle((h * across - 0.5, i * down - 0.5), size, rows, fill=False,
                                     edgecolor=FOLLOWED if mine else "#cccccc", linewidth=2 if mine else 0.5,
                                     zorder=3 if mine else 2, gid="framed" if mine else None))  # fmt: skip
    return image


def _held(trace: Trace) -> list[int]:
    """The layers that a trace holds; those whose keys are no tokens of the text have no columns to draw."""
    return [n for n in kept_numbers(trace.attention) if trace.attention[n].shape[2] == len(trace.tokens)]


@dataclass(frozen=True)
class Choice:
    """What is drawn large of a text. best: of each of its occurrences what that layer links it to most; link: of a
    text in which no word is followed, what is framed.
    """

    layer: int
    head: int | None
    best: list[SpecificWeight | None]
    link: Link | None = None


def choices(summary: Summary, traces: Sequence[Trace], layer: int | None, head: int | None) -> list[Choice]:
    """Choose what to draw large of each text: the head that the sentences name, the mean of heads where none is named.

    layer, head: those that were asked for, None for the ones that the sentences name.
    """
    layer, head = check_heads(traces[0], layer, head)
    first = kept_numbers(traces[0].attention)[0]
    made = []
    for n, trace in enumerate(traces):
        sinks = [sink.token for sink in summary.sinks[n]]
        if not summary.occurrences:
            link = most_distinctive_link(trace, layer, head, sinks)
            where = (first if layer is None else layer, head) if link is None else (link.layer, link.head)
            made.append(Choice(*where, [], link))
            continue
        words = [o.tokens for o in summary.occurrences if o.text == n]
        found = specific_weights(
            trace, words, sinks, layers=None if layer is None else [layer], head=head, words_alone=True
        )
        every = [each for weights in found for each in weights]
        best = max(every, key=lambda each: each.divergence, default=None)
        shown = best.layer if best is not None else first if layer is None else layer
        of_words = [next((w for w in every if (w.layer, list(w.queries)) == (shown, own)), None) for own in words]
        made.append(Choice(shown, head if best is None else best.head, of_words))
    return made


def reason_of(chosen: Choice) -> SpecificWeight | None:
    """The largest divergence in the head that is drawn."""
    here = [each for each in chosen.best if each is not None and each.head == chosen.head]
    return max(here, key=lambda each: each.divergence, default=None)


def drawn_large(summary: Summary, chosen: Sequence[Choice]) -> list[list[Large]]:
    """The occurrences of each text that are drawn large, with what is framed in each.

    The first eight of a text; of texts that were read in windows the eight in all whose words say most.
    """
    every = [
        list(zip([o for o in summary.occurrences if o.text == n], each.best, strict=True))
        for n, each in enumerate(chosen)
    ] if summary.occurrences else [[] for _ in chosen]  # fmt: skip
    if not summary.windows:
        return [text[:OCCURRENCES] for text in every]
    large = [each for text in every for each in text]
    told = sorted(large, key=lambda each: 0.0 if each[1] is None else -each[1].divergence)
    labels = {occurrence.label for occurrence, _ in told[:OCCURRENCES]}
    return [[large for large in text if large[0].label in labels] for text in every]


def not_all(summary: Summary, large: Sequence[Sequence[Large]]) -> list[str]:
    """Sentences on the occurrences that are not drawn large."""
    if summary.windows:
        shown, count = sum(map(len, large)), len(summary.occurrences)
        which = f"{shown} of {count} occurrences are drawn large, those whose attention says most about them"
        return [which] if shown < count else []
    counts = [sum(o.text == n for o in summary.occurrences) for n in range(len(summary.texts))]
    return [f"text {summary.labels[n]}: the first {OCCURRENCES} of {count} occurrences are drawn large"
            for n, count in enumerate(counts) if count > OCCURRENCES]  # fmt: skip
