"""Write the small stage that a notebook shows: sentences with arcs and their heads, as SVG in the colours around it."""

from collections.abc import Sequence
from html import escape
from typing import Any

from regard.display.elements.colours import TEXTS
from regard.display.elements.pen import ribbon, text_width
from regard.explain.wording import number
from regard.questions.see.picture.lines import TextLine, laid, pieces
from regard.text.quoting import visible

SIZE, GAP, LEFT, WIDE = 20, 56, 480, 720  # pixels: of letters, from line to line, of sentences, of all
SHADES = 8  # of the heads
SMALL, LARGE = "font:11px system-ui,'Noto Sans',sans-serif", f"font:{SIZE}px Georgia,'Noto Serif',serif"


def small_stage(lines: Sequence[TextLine]) -> str:
    """Make the HTML of sentences, without controls or scripts. Its colours go with those of the letters around it."""
    drawn, y = "", 0.0
    for n, line in enumerate(lines):
        places = laid(line, lambda text: text_width(text, SIZE, serif=True), LEFT - 24)
        hue = f"color:color-mix(in srgb,{TEXTS[n % 2]} 85%,currentColor)"
        heads, high = _heads(line, y + 24)
        drawn += _tag("g", _marks(line, places, y + 68) + heads, style=hue) + _words(line, places, y + 68)
        y += max(98 + GAP * places[-1][2], 30 + high)
    style = f"display:block;width:100%;max-width:{WIDE}px;fill:currentColor;{LARGE}"
    said = escape(visible(" ".join(line.trace.text for line in lines)))
    return _tag("svg", drawn, viewBox=f"0 0 {WIDE} {y:.0f}", role="img", aria_label=said, style=style)


def _tag(name: str, said: str = "", **attributes: object) -> str:
    """Write an element; numbers with one decimal."""
    own = {key.replace("_", "-"): f"{v:.1f}" if isinstance(v, int | float) else v for key, v in attributes.items()}
    return f"<{name} " + " ".join(f'{key}="{value}"' for key, value in own.items()) + f">{said}</{name}>"


def _marks(line: TextLine, places: Sequence[tuple[int | float, int | float, int]], base: int | float) -> str:
    """The grounds of tokens, the arcs to those that are in the word's line, and the weights; a frame for the word."""
    boxes = {k: (left + 4, wide, base + GAP * row) for k, (left, wide, row) in zip(line.shown, places, strict=True)}
    first = boxes[line.tokens[0]]
    frame: Any = {"fill": "none", "stroke": "currentColor", "stroke_width": 1.5, "height": 28, "rx": 3}
    own = [boxes[k] for k in line.tokens]
    drawn = "".join(_tag("rect", x=x - 2, y=y - 20, width=wide + 4, **frame) for x, wide, y in own)
    put: list[tuple[int | float, int | float]] = []  # numbers, the largest first
    for k, weight, *_ in sorted(line.arcs, key=lambda arc: -arc[1]):
        if k not in boxes or weight <= 0.01:
            continue
        x, wide, y = boxes[k]
        middle, pale = x + wide / 2, 0.4 if k in line.apart else 1.0
        shade = f"{pale * 0.55 * weight**0.5:.2f}"
        drawn += _tag("rect", x=x - 1, y=y - 19, width=wide + 2, height=26, rx=3, opacity=shade)
        if weight > 0.04 and all(abs(middle - px) > 24 or y != py for px, py in put):
            put.append((middle, y))
            drawn += _tag("text", number(weight), x=middle, y=y + 20, text_anchor="middle", style=SMALL)
        if y == first[2]:
            start = first[0] + first[1] / 2
            lift = min(52.0 if y == base else 20.0, 22 + abs(middle - start) * 0.3)
            p = [f"{a:.1f} {b + y - 22:.1f}" for a, b in ribbon(start, middle, 1 + 16 * weight, lift, -1, 1)]
            shape = f"M{p[0]}C{p[1]} {p[2]} {p[3]}L{p[4]}C{p[5]} {p[6]} {p[7]}Z"
            drawn += _tag("path", d=shape, opacity=f"{0.7 * pale:.2f}")
    return _tag("g", drawn, fill="currentColor")


def _words(line: TextLine, places: Sequence[tuple[int | float, int | float, int]], base: int | float) -> str:
    """The tokens as the text has them, special ones small."""
    written, drawn = pieces(line), ""
    for k, (left, wide, row) in zip(line.shown, places, strict=True):
        own: dict[str, object] = (
            {"style": f"{SMALL};opacity:.6"} if line.trace.tokens[k].special else {"textLength": wide}
        )
        drawn += _tag("text", escape(written[k][0]), x=left + 4, y=base + GAP * row, **own)
    return drawn


def _heads(line: TextLine, y: int | float) -> tuple[str, int | float]:
    """A cell for every head, in shades, and how high they are. Layers go across where they are more than heads."""
    turned = len(line.layers) > len(line.strongest[0])
    down, across = (len(line.layers), len(line.strongest[0]))[:: -1 if turned else 1]
    side, shades = min(18.0, (WIDE - LEFT) / across), [""] * (SHADES + 1)
    for layer, weights in enumerate(line.strongest):
        for head, weight in enumerate(weights):
            i, j = (head, layer) if turned else (layer, head)
            at = f"M{LEFT + j * side:.1f} {y + i * side:.1f}"
            shades[round(SHADES * weight**0.75)] += f"{at}h{side - 1:.1f}v{side - 1:.1f}h{1 - side:.1f}z"
    cells = "".join(_tag("path", d=d, opacity=f"{0.07 + 0.93 * n / SHADES:.2f}") for n, d in enumerate(shades) if d)
    title = f"{'head by layer' if turned else 'layer by head'}: strongest link from “{escape(line.word)}”"
    return _tag("g", _tag("text", title, x=LEFT, y=y - 7, style=SMALL) + cells, fill="currentColor"), side * down
