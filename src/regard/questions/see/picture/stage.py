"""Draw the plot of `regard see` as a slide or a paper's column: sentences with arcs, heads, and a word's movement."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from regard.display.canvas import GREY, INK, NEUTRAL, RULE, SINK, TEXTS, Plot, ink_on, or_nan, tint
from regard.display.figure import drawn
from regard.display.panels import Bars
from regard.display.pen import SLIDE, Pen, frame, mark, ribbon, text_width
from regard.explain.logits import Prediction
from regard.explain.texts.summary import Summary, curves, leaves_range
from regard.explain.wording import capital, number, short_head, signed
from regard.questions.see.panels import predicted_position
from regard.questions.see.picture import lines as stage
from regard.questions.see.picture.lines import TextLine
from regard.questions.see.sentences import findings
from regard.text.quoting import direction, quoted, short
from regard.trace.status import exactness

COLUMN = 241.0  # points: 85 mm
ROWS, WORDS, LINKS = 3, 10, 9  # maximum texts (without a followed word), reference words, and links
MAPPED = 48  # maximum tokens of a text whose matrix is drawn
Painter = Callable[[int | float, int | float, int | float, int | float], object]  # left, top, width and height
Place = tuple[int | float, int | float, int]


@dataclass(frozen=True)
class Style:
    """Sizes in points. unit: a pixel of the page. small, plain, title: for labels. serif: for texts, largest first."""

    unit: int | float
    small: int | float
    plain: int | float
    title: int | float
    serif: tuple[int | float, ...]


ON_SLIDE = Style(0.74, 8.6, 9.6, 11.0, (30, 27, 24, 21, 19, 17, 15.5, 14, 12.5, 11, 10, 9))
IN_COLUMN = Style(0.3, 5.4, 5.9, 6.4, (9, 8.4, 7.8, 7.2, 6.6, 6.2, 5.8, 5.4))


def drawn_predictions(summary: Summary) -> list[Prediction]:
    """Return the predictions to draw: all, except those after the end token of a text."""
    ends = [len(tokens) - tokens[-1].special for tokens in summary.tokens]  # the predictions from here on are left out
    return [p for p in summary.predictions if not p.after or p.token < ends[p.text]]


class Stage:
    """Draws the panels of a summary's plot. lines: the texts that `choose_lines` chose from the traces."""

    def __init__(self, summary: Summary, lines: Sequence[TextLine], pen: Pen, look: Style) -> None:
        self.summary, self.lines, self.pen, self.look = summary, lines, pen, look
        self.two = summary.word is not None and len(lines) > 1
        compared = bool(summary.references) and summary.massive is not None
        self.words, self.movement = curves(summary)[:WORDS] if compared else [], stage.movement(summary, lines)

    def slide(self) -> None:
        """Draw all panels on a slide, with the first finding as the title."""
        pen, (right, high), first = self.pen, SLIDE, self.lines[0]
        write_headline(pen, self.summary, self.lines, findings(self.summary))
        heads = f"{len(first.layers)} layers × {len(first.cells[0])} heads"
        pen.text(24, high - 12, f"{first.trace.status.model} · {heads}", self.look.small, GREY, room=430)
        checked = exactness([line.trace.status for line in self.lines])
        pen.text(right - 24, high - 12, checked, self.look.small, GREY, "right", room=470)
        if self.two:
            self._draw_texts(24, 82, 580, 254)
            self._draw_grids(24, 350, 580, 160)
            (self._draw_curves if self.movement else self._draw_links)(636, 82, 300, 244)
            (self._draw_references if self.words else self._draw_links)(636, 350, 300, 160)
        elif len(self.lines) == 1:
            self._draw_texts(24, 80, right - 48, 246)
            self._draw_grid(0, 24, 338, 300, 172)
            wide = 282 if self.words or drawn_predictions(self.summary) or len(first.shown) <= MAPPED else 584
            if wide == 282:
                self._draw_middle(352, 338, 270, 172)
            self._draw_links(936 - wide, 338, wide, 172)
        else:
            tall = 436 / min(ROWS, len(self.lines))
            for n in range(min(ROWS, len(self.lines))):
                self._draw_stack((n,), 24, 82 + n * tall, 600, tall - 12)
                self._draw_grid(n, 660, 86 + n * tall, 276, tall - 24)

    def column(self) -> list[tuple[Painter, int | float]]:
        """Return the painters of a column's three panels, each with its height in points."""
        last: tuple[Painter, int | float] = (
            (self._draw_references, 30 + 13.0 * len(self.words)) if self.words else (self._draw_links, 96.0)
        )
        if self.two:
            return [(self._draw_texts, 112.0), (self._draw_curves if self.movement else self._draw_grids, 112.0), last]
        return [(self._draw_texts, 74.0), (lambda *at: self._draw_grid(0, *at), 96.0), last]

    def _draw_middle(self, *at: int | float) -> None:
        """Draw the middle panel for one text: reference words, else the next token, else all links."""
        if self.words:
            self._draw_references(*at)
        elif predictions := drawn_predictions(self.summary):
            last, (x, y, wide, high) = predictions[-1], at
            title = f"{'after' if last.after else 'at'} {quoted(predicted_position(self.summary, last)[1])}"
            parts = [(token.text, token.probability) for token in last.candidates]
            bars = Bars(name=title, title=title, parts=parts, part="token", unit="probability", signed=False)
            y, bottom = self._title(x, y, capital(title), wide, "the likeliest tokens and their probability"), y + high
            axes = self.pen.inset(x + 62, y, wide - 62, bottom - y - 4)
            drawn(bars, True).paint(axes)
            axes.set(xlabel="", xlim=(0, 1.15), xticks=[])
        else:
            self._draw_matrix(*at)

    def _title(self, x: int | float, y: int | float, text: str, room: int | float, under: str = "") -> int | float:
        return self.pen.title(x, y, text, room, under, (self.look.title, self.look.small))

    def _draw_texts(self, x: int | float, y: int | float, wide: int | float, high: int | float) -> None:
        """Draw the sentences. If two fit in one line each, their followed words are aligned."""
        badge, look = 30 * self.look.unit, self.look
        for size in (min(size, 22.0) for size in look.serif) if self.two else ():
            layouts = [self._layout(n, 1e9, size) for n in (0, 1)]
            at = [self._word_middle(n, layout) for n, layout in enumerate(layouts)]
            after = max(layout[-1][0] + layout[-1][1] - middle for layout, middle in zip(layouts, at, strict=True))
            if max(at) + after + badge <= wide:
                column = x + badge + max(at) + (wide - badge - max(at) - after) / 2
                gap = size * 1.36 + 2.3 * look.plain + 6 * look.unit
                lift = (high - gap - size * 1.4) / 2
                for n in (0, 1):
                    base = y + lift + size + n * gap
                    self._draw_text(n, column - at[n], base, layouts[n], size, 1 if n else -1, lift, 0)
                labels = {line.label for line in self.lines}
                if any({pair.a, pair.b} == labels and pair.token_embeddings_equal for pair in self.summary.pairs):
                    tie = [base - gap + size * 0.45, base - size * 1.1]
                    self.pen.axes.plot([column] * 2, tie, color=GREY, lw=1.1 * look.unit, ls=(0, (1.5, 3)))
                return
        self._draw_stack(range(len(self.lines)), x, y, wide, high)

    def _draw_stack(
        self, numbers: Sequence[int], x: int | float, y: int | float, wide: int | float, high: int | float
    ) -> None:
        """Draw sentences below one another, in the largest font size that fits, each on one line if possible."""
        look = self.look
        badge = 30 * look.unit * (len(self.lines) > 1)
        for size in look.serif:
            layouts = [self._layout(n, wide - badge, size) for n in numbers]
            rows = [layout[-1][2] + 1 for layout in layouts]
            gap = size * 1.36 + (1.5 * look.plain + 12 * look.unit) * (sum(rows) < 7)
            under = look.plain * 1.6 + look.small * 1.3 * (max(rows) == 1)
            if max(rows) == 1 or (size <= look.serif[5 if look is ON_SLIDE else 3] and sum(rows) * gap + under <= high):
                break
        free = high - sum(size * 1.3 + (count - 1) * gap + under for count in rows)
        reach = 26 * look.unit
        if max(rows) == 1:  # the height depends on the longest arc
            ends = [abs(p[k][0] + p[k][1] / 2 - self._word_middle(n, p)) for n, p in zip(numbers, layouts, strict=True)
                    for k, weight, *_ in self.lines[n].arcs if weight > 0.004]  # fmt: skip
            reach = 0.27 * max(ends, default=0.0) + 36 * look.unit
        lift = max(0.0, min(free / len(numbers), reach))
        base = y + max(0.0, free - lift * len(numbers)) / 2
        for n, layout, count in zip(numbers, layouts, rows, strict=True):
            full = max(left + w for left, w, _ in layout)
            start = x + badge + (wide - badge - full) / 2 * (max(rows) == 1 and len(self.lines) == 1)
            base += lift + size
            self._draw_text(n, start, base, layout, size, -1, lift, gap * (max(rows) > 1))
            base += size * 0.3 + (count - 1) * gap + under

    def _layout(self, n: int, room: int | float, size: int | float) -> list[Place]:
        return stage.layout(self.lines[n], lambda text: text_width(text, size, serif=True), room)

    def _word_middle(self, n: int, layout: Sequence[Place]) -> int | float:
        """Return the x of the word's middle. If the word is split over lines, use its part on the first."""
        boxes = [layout[k - self.lines[n].shown.start] for k in self.lines[n].tokens]
        boxes = [box for box in boxes if box[2] == boxes[0][2]]
        return (boxes[0][0] + boxes[-1][0] + boxes[-1][1]) / 2

    def _draw_text(
        self,
        n: int,
        x: int | float,
        base: int | float,
        layout: Sequence[Place],
        size: int | float,
        up: int,
        room: int | float,
        gap: int | float,
    ) -> None:
        """Draw a sentence with its arcs and weights. base: y of the first line. room: the arcs' height in points."""
        pen, line, unit, hue = self.pen, self.lines[n], self.look.unit, TEXTS[n % 2]
        full = max(left + wide for left, wide, _ in layout)
        if direction(line.trace.text) == "rtl":
            layout = [(full - left - wide, wide, row) for left, wide, row in layout]
        boxes = {k: (x + left, wide, base + row * gap) for k, (left, wide, row) in zip(line.shown, layout, strict=True)}
        if len(self.lines) > 1:
            pen.axes.plot([x - 20 * unit], [base - size * 0.33], "o", color=hue, markersize=20 * unit)
            pen.text(x - 20 * unit, base - size * 0.33 + self.look.small * 0.36, line.label, self.look.small, "#ffffff",
                     "center", bold=True)  # fmt: skip
        weights = {k: weight for k, weight, *_ in line.arcs}
        texts = stage.written_tokens(line)
        for k, (left, wide, y) in boxes.items():
            grey, special = k in line.apart, line.trace.tokens[k].special
            shade = min(1.0, weights.get(k, 0.0) ** 0.5 * (0.45 if grey else 0.92))
            ground = tint(SINK if grey else hue, shade, pen.ground)
            if shade >= 0.12:
                pen.box(left - 1.5 * unit, y - size * 0.95, wide + 3 * unit, size * 1.28, ground)
            ink = GREY if special else ink_on(ground) if shade >= 0.12 else INK
            pen.text(left, y, texts[k][0], size * (0.45 if special else 1), ink, serif=not special, zorder=4)
        pieces = [boxes[k] for k in line.tokens if boxes[k][2] == boxes[line.tokens[0]][2]]
        edge, end, level = min(box[0] for box in pieces), max(box[0] + box[1] for box in pieces), pieces[0][2]
        room_of_word = edge - 2 * unit, level - size, end - edge + 4 * unit, size * 1.36
        pen.box(*room_of_word, "none", hue, lw=1.8 * unit, zorder=4.5)
        arcs = sorted((arc for arc in line.arcs if arc[1] > 0.004 and arc[0] in boxes), key=lambda arc: -arc[1])
        middles = {k: boxes[k][0] + boxes[k][1] / 2 for k, *_ in arcs}
        tight = min((b - a for a, b in pairwise(sorted(middles.values()))), default=pen.wide)
        start, labels = (edge + end) / 2, list[tuple[int | float, int | float]]()
        for k, weight, layer, head in arcs:
            middle, y, grey = middles[k], boxes[k][2], k in line.apart
            colour = SINK if grey else hue
            look: Any = {"alpha": 0.22 if grey else min(0.85, 0.25 + 0.6 * weight**0.5), "gid": f"arc {n} {k}"}
            if y == level:
                limit = max(6 * unit, (max(12 * unit, gap - size * 1.3) if gap else room) / 0.75 - 15 * unit)
                lift = min(limit, 32 * unit + abs(middle - start) * (0.44 if self.two else 0.36))
                edge = y - size * 1.02 if up < 0 else y + size * 0.4
                arc = ribbon(start, middle, (1 + weight * 34) * unit, lift, up, unit)
                pen.shape([(px, edge + py) for px, py in arc], colour, zorder=1 if grey else 2, **look)
            else:
                start_y, end_y = (level + size * 0.4, y - size) if y > level else (level - size, y + size * 0.4)
                bend = (end_y - start_y) * 0.6
                curve = [(start, start_y), (start, start_y + bend), (middle, end_y - bend), (middle, end_y)]
                pen.shape(curve, colour, (1 + weight * 8) * unit, zorder=1, **look)
            crowded = any(abs(px - middle) < 2.4 * self.look.plain and py == y for px, py in labels)
            if weight < 0.015 or crowded or (gap and gap < size * 1.4):
                continue
            labels.append((middle, y))
            low = y + size * 0.34 + self.look.plain if up < 0 else y - size * 1.02 - 3 * unit
            strong = weight >= 0.1 and not grey
            pen.text(middle, low, number(weight), self.look.plain, hue if strong else GREY, "center", bold=strong,
                     gid=f"weight {n} {k}", zorder=6)  # fmt: skip
            if line.head is None and not gap:
                name = f"layer {layer} head {head}"
                name = name if tight > text_width(name, self.look.small) * 1.1 else short_head(layer, head)
                pen.text(middle, low + self.look.small * 1.25, name, self.look.small, GREY, "center")

    def _draw_grids(self, x: int | float, y: int | float, wide: int | float, high: int | float) -> None:
        """Draw the grids of heads of both texts side by side."""
        for n in (0, 1):
            self._draw_grid(n, x + n * (wide + 12) / 2, y, (wide - 12) / 2, high)

    def _draw_grid(self, n: int, x: int | float, y: int | float, wide: int | float, high: int | float) -> None:
        """Draw a grid with a cell for every head, shaded by `line.kind`. Layers go across if there are more."""
        line, look, bottom = self.lines[n], self.look, y + high
        prefix = f"{line.label} · " if len(self.lines) > 1 else ""
        largest = sorted(line.arcs, key=lambda arc: -arc[1])[:3]
        caption = line.where() + "".join(f" · {line.name(k)} {number(w)}" for k, w, *_ in largest if w > 0.003)
        title = f"{prefix}Every head: its {line.kind} from “{short(line.word, 14)}”"
        y, left = self._title(x, y, title, wide, caption) + look.small * 1.4, look.small * 2.6
        values = np.array(line.cells)
        names = [[str(layer) for layer in line.layers], [str(head) for head in range(values.shape[1])]]
        if turned := values.shape[0] > values.shape[1]:
            values, names = values.T, names[::-1]
        tall = min(bottom - y, (wide - left) / values.shape[1] * 1.25 * values.shape[0])
        bounds = x + left, y, wide - left, tall
        axes = self.pen.cells(*bounds, values, TEXTS[n % 2], names, size=look.small, gid=f"heads {n}")
        axes.set_ylabel("head" if turned else "layer", fontsize=look.small, color=GREY, labelpad=2)
        for layer, head in [line.head] if line.head else [(arc[2], arc[3]) for arc in line.arcs]:
            if head is not None:
                row = line.layers.index(layer)
                at = (row, head) if turned else (head, row)
                frame(axes, *at, line=1.8 * look.unit)

    def _draw_curves(self, x: int | float, y: int | float, wide: int | float, high: int | float) -> None:
        """Draw the curves of the word's movement through the layers, each with its last value at its end."""
        fork = self.movement
        assert fork is not None
        pen, look, unit, bottom = self.pen, self.look, self.look.unit, y + high
        under = f"cosine to “{fork.ends[0]}” minus cosine to “{fork.ends[1]}”" if fork.ends else ""
        if fork.band and self.summary.neutral:
            under += "; " * bool(under) + f"grey: {self.summary.neutral[0].sentences} neutral sentences"
        y = self._title(x, y, fork.title, wide, under) + look.small
        last = [curve[-1] for curve in fork.curves]
        ends = [[] if v is None else [f"nearer {fork.ends[v < 0]}", _named_cosines(fork.ends, pair)] if fork.ends
                else [number(v)] for v, pair in zip_longest(last, fork.cosines)]  # fmt: skip
        right = max((text_width(text, look.plain, True) for rows in ends for text in rows), default=0.0) + 14 * unit
        left, states = look.small * 3.2, len(fork.curves[0])
        axes = pen.inset(x + left, y, wide - left - right, bottom - y - look.small * 1.6, look.small)
        if fork.band is not None:
            mean, low, top = map(or_nan, fork.band)
            axes.fill_between(range(states), low, top, color=NEUTRAL, alpha=0.75, lw=0)
            axes.plot(mean, color=GREY, lw=1.5 * unit, ls=(0, (1, 2)))
        for curve in fork.others:
            axes.plot(or_nan(curve), color=SINK, lw=1.2 * unit, alpha=0.5)
        hues = TEXTS if len(fork.curves) > 1 else (INK,)
        for n, (curve, hue) in enumerate(zip(fork.curves, hues, strict=True)):
            axes.plot(or_nan(curve), color=hue, lw=4 * unit, gid=f"curve {n}", solid_capstyle="round")
            mark(axes, states - 1, curve[-1], n, hue, 14 * unit, pen.ground)
        if fork.ends:
            axes.axhline(0, color=RULE, lw=unit, zorder=0.5)
            axes.yaxis.set_major_formatter(lambda value, _: signed(value, ".2g") if value else "0")
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        step = -(-states // 14)
        names = {0: "in"} | {n + 1: str(n) for n in range(0 if step == 1 else step, states - 1, step)}
        axes.set_xticks([*names], names.values())
        pen.text(x + wide - right + 14 * unit, bottom - look.small * 0.4, "layer", look.small, GREY)
        bottom_y, top_y = axes.get_ylim()
        levels = [value or 0.0 for value in last]
        gap = (2.7 if fork.ends else 1.4) * look.plain / (bottom - y - look.small * 1.6) * (top_y - bottom_y)
        if len(levels) == 2 and abs(levels[0] - levels[1]) < gap:
            middle, way = sum(levels) / 2, gap / 2 * (1 if levels[0] >= levels[1] else -1)
            levels = [middle + way, middle - way]
        for level, rows, hue in zip(levels, ends, hues, strict=True):
            axes.annotate("\n".join(rows), (states - 1, level), (11 * unit, 0), textcoords="offset points", va="center",
                          fontsize=look.plain, color=hue, fontweight="bold", annotation_clip=False)  # fmt: skip

    def _draw_references(self, x: int | float, y: int | float, wide: int | float, high: int | float) -> None:
        """Draw each reference word's cosines to the occurrences as dots over the range in neutral sentences."""
        pen, look, bottom = self.pen, self.look, y + high
        labels = [occurrence.label for occurrence in self.summary.occurrences]
        texts = [(labels.index(line.label), f"text {line.label}" if self.two else "cosine") for line in self.lines]
        neutral = next((row.neutral for row in self.words if row.neutral), None)
        under = "cosine to each reference word" + (f"; bar: {neutral.sentences} neutral sentences" if neutral else "")
        left_out = len({reference.word for reference in self.summary.references}) - len(self.words)
        under += f"; {left_out} more in --json" * (left_out > 0)
        title = f"Which words “{short(self.lines[0].word, 14)}” is near after the last layer"
        y, words = self._title(x, y, title, wide, under) + look.small, [short(row.word or "", 12) for row in self.words]
        left, room = max(text_width(word, look.plain, True) for word in words) + 6, 4.4 * look.plain
        axes = pen.inset(x + left, y, wide - left - room * len(texts), bottom - y - look.small * 1.2, look.small)
        axes.set(ylim=(len(words) - 0.5, -0.5))
        axes.set_yticks(range(len(words)), words, fontsize=look.plain, fontweight="bold", color=INK)
        axes.hlines(range(len(words)), 0, 1, RULE, lw=look.unit, transform=axes.get_yaxis_transform(), zorder=0.5)
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        axes.plot([0], [0], alpha=0)
        for n, (_, name) in enumerate(texts):
            pen.text(x + wide - room * (len(texts) - 1 - n), y - 1, name, look.small, TEXTS[n], "right")
        for at, row in enumerate(self.words):
            low, top = (row.neutral.low[-1], row.neutral.high[-1]) if row.neutral else (None, None)
            if low is not None and top is not None:
                axes.hlines(at, low, top, color=NEUTRAL, lw=15 * look.unit)
            for n, (index, _) in enumerate(texts):
                if (value := row.paths[index][-1]) is not None:
                    leaves = leaves_range(self.summary, labels[index], row.word or "", value)
                    colour = tint(TEXTS[n], 1.0 if leaves or row.neutral is None else 0.65, pen.ground)
                    mark(axes, value, at, n, colour, 13 * look.unit, pen.ground)
                    text = {"towards": "▲ ", "away from": "▼ "}.get(leaves or "", "") + number(value)
                    base = y + (bottom - y - look.small * 1.2) * (at + 0.5) / len(words) + look.plain * 0.36
                    pen.text(x + wide - room * (len(texts) - 1 - n), base, text, look.plain,
                             TEXTS[n] if leaves else GREY, "right", bold=bool(leaves))  # fmt: skip

    def _draw_matrix(self, x: int | float, y: int | float, wide: int | float, high: int | float) -> None:
        """Draw a matrix of all distinctive links, or of the chosen head's weights."""
        line, size, bottom = self.lines[0], len(self.lines[0].shown), y + high
        title = "All links that stand out" if line.head is None else f"All of {line.where()}"
        y = self._title(x, y, title, wide, "each row looks at the columns")
        values = np.zeros((size, size))
        for q, k, _, _, weight, _ in line.links:
            values[q, k] = weight
        if line.head is not None:
            (layer, head), kept = line.head, slice(line.shown.start, line.shown.stop)
            weights = line.trace.attention[layer]
            matrix = weights.dense().mean(0) if head is None else weights[head]
            values = matrix.double().cpu().numpy()[kept, kept]
        names, font = [line.name(n) for n in line.shown], min(self.look.small, max(4.0, 0.72 * (bottom - y) / size))
        left = max(text_width(name, font) for name in names) + 4
        side = min(wide - left, (bottom - y - left * 0.87 - 2))
        bounds = x + left, bottom - side, side, side
        axes = self.pen.cells(*bounds, values, TEXTS[0], [names, names], size=font, gid="map", rotation=60)
        for token in line.tokens:
            frame(axes, 0, token - line.shown.start, size, line=1.1)

    def _draw_links(self, x: int | float, y: int | float, wide: int | float, high: int | float) -> None:
        """Write a list of the most distinctive links, or of the largest weights of the chosen head."""
        pen, look, line, bottom = self.pen, self.look, self.lines[0], y + high
        title, under = "Unusually strong links", "stronger than expected from distance and word"
        links = sorted(line.links[:LINKS], key=lambda link: -link[4])
        rows = [(line.name(q), line.name(k), weight, f"expected {number(expected)}, layer {n} head {h}")
                for q, k, n, h, weight, expected in links]  # fmt: skip
        if not rows or line.head is not None:
            title, under = "The largest weights", "special tokens and sinks aside"
            rows = [(short(line.word, 14), line.name(k), weight, f"text {line.label}" if self.two else line.where())
                    for line in self.lines for k, weight, *_ in line.arcs if k not in line.apart]  # fmt: skip
            rows.sort(key=lambda row: -row[2])
        y = self._title(x, y, title, wide, under)
        spacing = max(look.plain * 1.6, (bottom - y) / LINKS)
        if not rows:
            pen.text(x, y + spacing, "There is no other word.", look.plain, GREY)
        origin_width = max((text_width(row[3], look.small) for row in rows), default=0.0)
        for n, (query, key, weight, origin) in enumerate(rows[: int((bottom - y + 2) / spacing)]):
            base = y + (n + 0.65) * spacing
            begin = x + pen.text(x, base, f"{query} → ", look.plain * 1.15, serif=True)
            pen.text(begin, base, key, look.plain * 1.15, TEXTS[0], serif=True, bold=True)
            pen.text(x + wide - origin_width - 10, base, number(weight), look.plain, align="right", bold=True)
            pen.text(x + wide, base, origin, look.small, GREY, "right")


def _named_cosines(words: Sequence[str], cosines: Sequence[Any]) -> str:
    """Write a vector's cosines with the words that they are to: "water 0.17, money 0.26"."""
    return ", ".join(f"{short(word, 10)} {number(cosine)}" for word, cosine in zip(words, cosines, strict=True))


def write_headline(pen: Pen, summary: Summary, lines: Sequence[TextLine], sentences: Sequence[str]) -> None:
    """Write the first sentence as a title, and the next two below."""
    sentences = sentences or ["No head attends unusually strongly to a word."]
    followed = lines[0].word if lines else summary.word or ""
    words = {token.text.strip().lower() for tokens in summary.tokens for token in tokens}
    words |= {reference.word.lower() for reference in summary.references}
    arcs = [f"Arcs: {line.where()}." for line in lines[:1] if line.asked]
    runs = [(text, GREY if aside else INK if of is None else TEXTS[of % 2], not aside, 0.62 if aside else 1.0)
             for text, of, aside in stage.split_by_colour(sentences[0], lines, followed, words)]  # fmt: skip
    pen.headline([sentences[0], *arcs, *sentences[1:3]], runs)


def paint_column(summary: Summary, lines: Sequence[TextLine]) -> Figure:
    """Draw panels a, b and c below one another, in a figure as wide as a paper's column."""
    high = 12 + sum(height + 8 for _, height in Stage(summary, lines, Pen(Figure(), 1, 1), IN_COLUMN).column())
    figure = Plot(figsize=(COLUMN / 72, high / 72))
    FigureCanvasAgg(figure)
    drawing, y = Stage(summary, lines, Pen(figure, COLUMN, high, "#ffffff"), IN_COLUMN), 8.0
    for letter, (painter, high) in zip("abc", drawing.column(), strict=True):
        drawing.pen.text(4, y + 6, letter, 8.5, bold=True)
        painter(16, y, COLUMN - 20, high)
        y += high + 8
    return figure
