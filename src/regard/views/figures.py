"""Pictures of a sight: the attention matrix, lines from a word to what it attends to, its path through the layers."""

import unicodedata
import warnings
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D
from matplotlib.text import Text
from torch import Tensor

from regard.explain.sight import Occurrence, Sight
from regard.files import whole
from regard.trace import Trace, gives
from regard.views.parts import short, visible

# One colour a head: light and dark of six hues, told apart by colour-blind eyes as far as twelve can be; lines of the
# next twelve are dashed, then dotted.
HEADS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
    "#332288", "#b8a800", "#44aa99", "#882255", "#117733", "#777777",
)  # fmt: skip
DASHES = ("-", "--", ":", "-.")
PATHS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777")
LABELS = 48  # tokens up to which every row and column is named
NAMED = 32  # of more tokens, how many of those that lines go to are named
FALLBACK_FONTS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Emoji", "Noto Sans", "Symbola", "Arial Unicode MS",
                  "Hiragino Sans", "Microsoft YaHei", "Segoe UI Emoji")  # fmt: skip


def draw(
    sight: Sight, traces: Sequence[Trace], file: Path, *, layer: int | None = None, head: int | None = None
) -> list[str]:
    """Write one picture of a sight, PNG or SVG by the file's ending, whole or not at all.

    For each text the attention matrix (of layer, 0 where none is given; of head, or the mean of heads) and, where a
    word is followed, lines from it to what each head attends to; then the word's path through all layers.

    Returns notes on what the picture could not show: characters that no installed font has.
    """
    layer = 0 if layer is None else layer
    kind = file.suffix.lower().removeprefix(".")
    followed = bool(sight.occurrences)
    heights = [_height(len(tokens)) for tokens in sight.tokens] + ([5.2] if sight.movement else [])
    figure = Figure(figsize=(13 if followed else 8.5, sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(len(heights), 2 if followed else 1, height_ratios=heights)
    shown = [t.attention[layer].dense().mean(0) if head is None else t.attention[layer][head] for t in traces]
    largest = max(_largest(matrix, trace) for matrix, trace in zip(shown, traces, strict=True))
    for number, (matrix, trace) in enumerate(zip(shown, traces, strict=True)):
        _matrix(figure, figure.add_subplot(grid[number, 0]), matrix, trace, number, _whose(layer, head), largest)
        if followed:
            _lines(figure.add_subplot(grid[number, 1]), sight, number, trace, layer, head)
    if sight.movement:
        _path(figure.add_subplot(grid[-1, :]), sight)
    font = ["DejaVu Sans", *(name for name in FALLBACK_FONTS if name in fontManager.get_font_names())]
    with (
        warnings.catch_warnings(record=True) as caught,
        matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "regard"}),
    ):
        warnings.simplefilter("always")
        for text in figure.findobj(Text):
            text.set_fontfamily(font)
            text.set_parse_math(False)
        with whole(file) as temporary:
            figure.savefig(temporary, format=kind, dpi=130, metadata={"Date": None} if kind == "svg" else None)
    return _missing_glyphs(caught)


def _matrix(
    figure: Figure, axes: Axes, matrix: Float[Tensor, "L L"], trace: Trace, number: int, whose: str, largest: float
) -> None:
    """The attention matrix with the tokens on both axes, in colours that end at the largest weight given."""
    values = matrix.cpu().numpy()
    image = axes.imshow(values, cmap="cividis", vmin=0, vmax=largest, aspect="equal", interpolation="nearest")
    names = [short(token.text, 16) for token in trace.tokens]
    step = max(1, -(-len(names) // LABELS))
    places = range(0, len(names), step)
    size = 8 if len(names) <= 24 else 6 if len(names) <= LABELS else 5
    axes.set_xticks(places, [_name(names[n], n, step) for n in places], rotation=90, fontsize=size)
    axes.set_yticks(places, [_name(names[n], n, step) for n in places], fontsize=size)
    axes.set_xlabel("attended to (key)", fontsize=8)
    axes.set_ylabel("attending (query)", fontsize=8)
    axes.set_title(f"Text {number + 1}: attention weights, {whose}", fontsize=10)
    above = (
        values.max() > largest * 1.0001
    )  # special tokens may take more: they have the last colour, and are in the bar
    bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03, extend="max" if above else "neither")
    bar.ax.tick_params(labelsize=7)
    if above:
        bar.set_label(f"special tokens take up to {values.max():.2f}", fontsize=7)


def _lines(axes: Axes, sight: Sight, number: int, trace: Trace, layer: int, head: int | None) -> None:
    """From each occurrence of the word a line to every token, one colour a head, as wide as the weight."""
    tokens = trace.tokens
    mine = [o for o in sight.occurrences if o.text == number]
    heads = list(range(trace.attention[layer].shape[0])) if head is None else [head]
    axes.set_axis_off()
    axes.set_ylim(len(tokens) - 0.5, -0.5)
    axes.set_xlim(-0.15, 1.3)
    size = 9 if len(tokens) <= 24 else 7
    rows = [gives(trace.attention[layer], occurrence.as_word()).cpu() for occurrence in mine]
    strongest = torch.stack(rows).amax((0, 1)).argsort(descending=True)[:NAMED].tolist()
    named = set(strongest) if len(tokens) > LABELS else set(range(len(tokens)))
    for place, token in enumerate(tokens):
        if place not in named:
            continue
        own = any(place in o.tokens for o in mine)
        colour = "#999999" if token.special else "black"
        weight = "bold" if own else "normal"
        axes.text(1.03, place, short(token.text), va="center", fontsize=size, color=colour, fontweight=weight)
    for nth, occurrence in enumerate(mine):
        start = (nth + 0.5) / len(mine) * len(tokens) - 0.5
        name = short(occurrence.word) + (f"  {occurrence.label}" if len(mine) > 1 else "")
        axes.text(-0.03, start, name, va="center", ha="right", fontsize=11, fontweight="bold")
        for h in heads:
            shift = (heads.index(h) + 0.5) / len(heads) * 0.6 - 0.3  # lines of one token stand side by side
            weights = rows[nth][h].tolist()
            style = DASHES[h // len(HEADS) % len(DASHES)]
            ends = [[(0.0, start), (1.0, place + shift)] for place in range(len(weights))]
            widths = [6 * weight for weight in weights]
            faint = [min(1.0, 0.25 + weight) for weight in weights]
            axes.add_collection(
                LineCollection(ends, colors=HEADS[h % len(HEADS)], linewidths=widths, alpha=faint, linestyles=style)
            )
    marks = [Line2D([], [], color=HEADS[h % len(HEADS)], linewidth=3, label=str(h)) for h in heads]
    axes.legend(handles=marks, title="head", ncols=max(1, -(-len(marks) // 12)), loc="center left",
                bbox_to_anchor=(1.0, 0.5), fontsize=7, title_fontsize=7, frameon=False)  # fmt: skip
    whose = _whose(layer, head, "all heads") + (f", {NAMED} strongest named" if len(tokens) > LABELS else "")
    axes.set_title(f"Text {number + 1}: what {_quoted(sight)} attends to, {whose}; width: weight", fontsize=10)


def _path(axes: Axes, sight: Sight) -> None:
    """The word's path through the layers, one line an occurrence; reference words where they end."""
    moved = sight.movement
    assert moved is not None
    for number, points in enumerate(moved.tokens):
        shown = [p for p, token in zip(points, sight.tokens[number], strict=True) if not token.special]
        colour = PATHS[number % len(PATHS)]
        axes.plot(*zip(*shown, strict=True), ".", color=colour, markersize=5, alpha=0.4)
        if len(shown) <= LABELS:
            names = [visible(token.text) for token in sight.tokens[number] if not token.special]
            for name, place in zip(names, shown, strict=True):
                axes.annotate(
                    name, place, textcoords="offset points", xytext=(3, 2), fontsize=6, color=colour, alpha=0.7
                )
    one = len(sight.texts) == 1
    for nth, (occurrence, points) in enumerate(zip(sight.occurrences, moved.words, strict=True)):
        colour = PATHS[(nth if one else occurrence.text) % len(PATHS)]
        xs, ys = zip(*points, strict=True)
        axes.plot(xs, ys, "-o", color=colour, markersize=4, linewidth=1.6, label=_legend(sight, occurrence))
        axes.plot(xs[-1:], ys[-1:], "*", color=colour, markersize=14)
        axes.annotate(occurrence.label, points[-1], textcoords="offset points", xytext=(8, -9), fontsize=10,
                      color=colour, fontweight="bold")  # fmt: skip
        for n, point in enumerate(points):
            name = "in" if n == 0 else str(n - 1)
            axes.annotate(name, point, textcoords="offset points", xytext=(5, 4), fontsize=7, color=colour)
    words = list(dict.fromkeys(reference.word for reference in sight.references))
    for word, points in zip(words, moved.references, strict=True):
        axes.plot(*zip(points[0], points[-1], strict=True), ":", color="#666666", linewidth=0.8)
        axes.plot(*points[-1], "D", color="#666666", markersize=5)
        axes.annotate(short(word), points[-1], textcoords="offset points", xytext=(6, -3), fontsize=9, color="#333333")
    across, up = (f"{part:.0%} of the variance" for part in moved.share)
    axes.set_xlabel(f"first principal component ({across})", fontsize=8)
    axes.set_ylabel(f"second ({up})", fontsize=8)
    axes.tick_params(labelsize=7)
    legend = "in: enters layer 0; n: leaves layer n; ★: the end; dots: the texts' tokens at the end"
    legend += "; ◆: reference words, from start to end" if words else ""
    axes.set_title(f"The path of {_quoted(sight)} through the layers ({legend})", fontsize=10)
    axes.legend(fontsize=8, frameon=False)


def _largest(matrix: Float[Tensor, "L L"], trace: Trace) -> float:
    """The largest weight on a token that is not special: what the colours are for."""
    own = [n for n, token in enumerate(trace.tokens) if not token.special]
    return max(float(matrix[:, own].max()), 1e-6)


def _legend(sight: Sight, occurrence: Occurrence) -> str:
    """The occurrence with the words around it."""
    text = sight.texts[occurrence.text]
    start, end = max(0, occurrence.start - 36), occurrence.end + 24
    around = ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
    return f"{occurrence.label}  {short(around, 72)}"


def _quoted(sight: Sight) -> str:
    return f"“{short(sight.word or '')}”"


def _whose(layer: int, head: int | None, every: str = "mean of heads") -> str:
    return f"layer {layer}, {every if head is None else f'head {head}'}"


def _name(name: str, place: int, step: int) -> str:
    return name if step == 1 else f"{place} {name}"


def _height(tokens: int) -> float:
    """Inches for a text's row of pictures."""
    return min(8.0, max(4.6, 1.6 + 0.21 * tokens))


def _missing_glyphs(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """One note for all characters that no installed font has."""
    lost = []
    for warning in caught:
        message = str(warning.message)
        if message.startswith("Glyph "):
            code = int(message.split()[1])
            lost.append(f"{chr(code)!r} ({unicodedata.name(chr(code), 'unnamed')})")
    unique = list(dict.fromkeys(lost))
    return [f"no installed font has {', '.join(unique)}: drawn as a box"] if unique else []
