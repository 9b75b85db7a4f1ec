"""The whole way of a word through one attention block, in one diagram: every strip of colour is real numbers."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.patches import ConnectionPatch, Rectangle
from torch import Tensor

from regard.display.elements.canvas import stack_rows_in_figure
from regard.display.elements.colours import DIFFERENCES, FOLLOWED, SPECIAL, WEIGHTS, weight_scale
from regard.display.elements.slide import Row
from regard.display.panels import TALL
from regard.explain.causes.block_steps import block_steps
from regard.explain.wording import in_plot
from regard.questions.steps.sentences import root_of
from regard.text.quoting import quoted, spelled
from regard.textbook import HeadSteps

if TYPE_CHECKING:
    from regard.questions.steps.answer import Steps

WIDE = 16.0  # inches
ROWS = 24  # keys that are drawn, of more those with the largest weights
HIDDEN = "#dddddd"  # what the query may not look at
DRAWN = 6  # tokens of a word, over all its occurrences, that are drawn


def paint_steps(found: "Steps", shape: str = TALL) -> tuple[Figure, list[str]]:
    """Draw the diagram, one below the other for each token of the word; returns notes on what is not drawn."""
    count = len(found.found)
    more = [f"the first {DRAWN} of {count} tokens are drawn"] if count > DRAWN else []
    height = 5.6 + 0.21 * min(len(found.tokens), ROWS)
    parts = [_Diagram(found, *each) for each in found.found[:DRAWN]]
    rows = [Row(height, part.paint, f"{part.name} (token {part.token})") for part in parts]
    return stack_rows_in_figure(rows, WIDE, shape), more


class _Diagram:
    """The diagram of one token. Names in it are those of `HeadSteps` and `BlockSteps`."""

    figure: FigureBase

    def __init__(self, found: "Steps", token: int, record: HeadSteps) -> None:
        self.tokens, self.layer, self.head = found.tokens, found.layer, found.head
        self.sinks = [sink.token for sink in found.sinks]
        self.token, self.record = token, record
        self.block = block_steps(found.traces[0], token, found.layer)
        self.shown = sorted(record.weights.argsort(descending=True, stable=True)[:ROWS].tolist())
        self.name = quoted(spelled(self.tokens[token].text, 16))
        self.number = 0

    def paint(self, figure: FigureBase, _: Any) -> None:
        """Draw everything: the head above, the rest of the block below."""
        self.figure, found = figure, self.record
        columns: list[tuple[str, Tensor, str]] = [("query · key", found.products, "signed")]
        columns.append((f"× {root_of(found) or f'{found.scale:.4g}'}", found.scaled, "signed"))
        if found.softcap is not None:
            columns.append((f"capped\nat {found.softcap:g}", found.capped, "signed"))
        if bool((found.bias != 0).any()):
            columns.append(("+ bias", found.capped + found.bias, "signed"))
        if bool(found.scores.isinf().any()):
            columns.append(("mask", found.scores, "signed"))
        largest = max(float(found.scores.max()), found.sink if found.sink is not None else -np.inf)
        columns.append((f"exp(s − m)\nm = {largest:z.2f}", found.exponentials, "weight"))
        columns.append((f"÷ {found.total:.4g}\n= weight", found.weights, "weight"))
        wide = [3.0, 1.9, *[0.62] * len(columns), 1.9, 1.9]
        down = [0.26, 0.21 * len(self.shown), 0.26]
        whole = self.figure.add_gridspec(2, 1, height_ratios=[sum(down) + 1.2, 2.9])
        above = whole[0].subgridspec(3, len(wide), width_ratios=wide, height_ratios=down)
        entering = self._entering(above[1, 0])
        query = self._strip(above[0, 1], found.query, f"query of {self.name} (W_Q)")
        keys = self._rows(above[1, 1], found.key, "keys (W_K)", signed=True)
        cells = [self._column(above[1, 2 + n], *column) for n, column in enumerate(columns)]
        values = self._rows(above[1, -2], found.value, "values (W_V)", signed=True)
        weighted = self._rows(above[1, -1], found.weighted, "weight × value", signed=True)
        context = self._strip(above[2, -1], found.context, f"sum: head {self.head}'s context", below=True)
        if entering is not None:
            self._arrow(entering, keys)
        for one, other in zip([keys, *cells], [*cells, values], strict=True):
            self._arrow(one, other)
        self._arrow(values, weighted)
        self._arrow(weighted, context, down=True)
        self._arrow(query, keys, down=True)
        self._block(whole[1])
        self.figure.suptitle(self._title(), fontsize=11)

    def _title(self) -> str:
        part = ""
        if len(self.shown) < len(self.tokens):
            share = float(self.record.weights[self.shown].sum())
            part = f"; the {len(self.shown)} of {len(self.tokens)} tokens with the largest weights, {share:.0%} of them"
        masked = bool(self.record.scores.isinf().any())
        grey = "; grey: may not be looked at" if masked else ""
        return (
            f"{self.name} (token {self.token}) through layer {self.layer}, head {self.head}: every step in its "
            f"own scale, ± the number beside it: blue below 0, white at 0, red above{grey}{part}"
        )

    def _step(self, what: str) -> str:
        self.number += 1
        return f"{self.number}  {what}"

    def _names(self, axes: Axes) -> None:
        axes.set_yticks(range(len(self.shown)), [spelled(self.tokens[n].text, 14) for n in self.shown], fontsize=8)
        for n, label in zip(self.shown, axes.get_yticklabels(), strict=True):
            if self.tokens[n].special or n in self.sinks:
                label.set_color(SPECIAL)
            if n == self.token:
                label.set_color(FOLLOWED)
                label.set_fontweight("bold")

    def _entering(self, place: Any) -> Axes | None:
        """What enters the layer, a row a token."""
        states = self.block.entering
        if states is None or len(states) != len(self.tokens):
            return None
        axes = self._rows(place, states, f"enters layer {self.layer}, a row a token", signed=True)
        self._names(axes)
        if self.token in self.shown:
            self._frame(axes, self.shown.index(self.token), states.shape[1])
        return axes

    def _rows(self, place: Any, values: Tensor, what: str, *, signed: bool) -> Axes:
        """A row a token, in the order of the text."""
        axes = self.figure.add_subplot(place)
        self._image(axes, values[self.shown].double().numpy(), signed)
        axes.set_title(self._step(what), fontsize=9, loc="left")
        axes.set_xlabel(f"{values.shape[1]} components, ±{float(values[self.shown].abs().max()):.3g}", fontsize=7)
        if what.startswith("keys") and self.block.entering is None:
            self._names(axes)
        return axes

    def _column(self, place: Any, what: str, values: Tensor, kind: str) -> Axes:
        """One number a token, written into its cell; what the query may not look at is grey."""
        axes = self.figure.add_subplot(place)
        shown = values[self.shown].double().numpy()[:, None]
        hidden = self.record.scores[self.shown].isinf().numpy() & (kind == "weight" or what == "mask")
        masked = np.where(hidden[:, None], np.nan, shown)
        axes.set_facecolor(HIDDEN)
        self._image(axes, masked, kind == "signed")
        top = max(float(np.nanmax(np.abs(masked), initial=0)), 1e-12)
        for n, value in enumerate(masked[:, 0]):
            if np.isnan(value):
                continue
            dark = abs(value) / top > 0.6 if kind == "signed" else value > 0.36
            number = in_plot(value, 2, unbounded=True) if kind == "signed" else in_plot(value, 3)
            axes.text(0, n, number, ha="center", va="center", fontsize=7, color="white" if dark else "#222222")
        axes.set_title(self._step(what), fontsize=8, loc="center")
        return axes

    def _strip(self, place: Any, values: Tensor, what: str, *, below: bool = False) -> Axes:
        """One vector as one row."""
        axes = self.figure.add_subplot(place)
        self._image(axes, values.double().numpy()[None], signed=True)
        named = f"{self._step(what)}, ±{float(values.abs().max()):.3g}"
        if below:
            axes.set_xlabel(named, fontsize=9, loc="left")
        else:
            axes.set_title(named, fontsize=9, loc="left")
        return axes

    def _block(self, place: Any) -> None:
        """All heads side by side, and what the block makes of them."""
        block = self.block
        each = len(block.joined) // block.heads
        steps: list[tuple[str, Tensor | None]] = [
            (f"the contexts of all {block.heads} heads side by side, {each} components each", block.joined)
        ]
        if block.refused is None:
            norm = {"post-norm": "the norm of it: enters the feed-forward part"}.get(block.kind or "", "")
            steps += [
                ("by W_O: what attention adds", block.projected),
                (f"+ {self.name} as it came: the residual", block.residual),
                ("= their sum" + ("" if block.normed is not None else _after(block.kind)), block.total),
                (norm, block.normed),
            ]
        drawn = [(what, values) for what, values in steps if values is not None]
        parts = place.subgridspec(len(drawn), 1)
        before: Axes | None = None
        for n, (what, values) in enumerate(drawn):
            axes = self._strip(parts[n], values, what)
            if n == 0:
                for h in range(1, block.heads):
                    axes.axvline(h * each - 0.5, color="#444444", linewidth=0.6)
                self._frame(axes, 0, each, self.head * each)
                if block.refused is not None:
                    axes.set_xlabel(f"how the model goes on is not known exactly: {block.refused}", fontsize=8)
            if before is not None:
                self._arrow(before, axes, down=True)
            before = axes

    def _image(self, axes: Axes, values: Any, signed: bool) -> None:
        settings: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest"}
        if signed:
            largest = max(float(np.nanmax(np.abs(values), initial=0)), 1e-12)
            axes.imshow(values, cmap=DIFFERENCES, vmin=-largest, vmax=largest, **settings)
        else:
            axes.imshow(values, cmap=WEIGHTS, norm=weight_scale(1.0), **settings)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_color("#999999")

    def _frame(self, axes: Axes, row: int, width: int, start: int = 0) -> None:
        axes.add_patch(Rectangle((start - 0.5, row - 0.5), width, 1, fill=False, edgecolor=FOLLOWED, linewidth=2,
                                 zorder=3, clip_on=False, gid="framed"))  # fmt: skip

    def _arrow(self, one: Axes, other: Axes, *, down: bool = False) -> None:
        """From one step to the next: to the right, or downwards."""
        start, end = ((0.5, 0.0), (0.5, 1.0)) if down else ((1.0, 0.5), (0.0, 0.5))
        self.figure.add_artist(
            ConnectionPatch(start, end, one.transAxes, other.transAxes, arrowstyle="-|>", color="#555555",
                            linewidth=1.2, mutation_scale=9, shrinkA=1, shrinkB=1)
        )  # fmt: skip


def _after(kind: str | None) -> str:
    """What is done with the sum where no norm stands behind it."""
    return {
        "pre-norm": ": leaves the attention block (the norm stood before it)",
        "parallel": ": beside it the feed-forward part adds its own",
    }.get(kind or "", "")
