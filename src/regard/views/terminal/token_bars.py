"""The texts with a bar under each token: how much of its attention a followed word gives it, in one layer."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from regard.explain.findings.looks import layer_looked_at
from regard.explain.texts.occurrences import Occurrence
from regard.explain.texts.summary import Summary
from regard.explain.weights.attended import Attended
from regard.text.tokens import Token
from regard.views.terminal.layout import in_title, spelled

BARS = " ▁▂▃▄▅▆▇█"
FULL = 0.30  # the weight that fills a bar
MOST_TEXTS = 4  # texts whose tokens are shown
MOST_LINES = 4  # lines of one text's tokens


def token_bars(summary: Summary, width: int) -> list[RenderableType]:
    """The texts' tokens; under each a bar as high as the weight that the followed word gives it in one layer."""
    parts: list[RenderableType] = []
    looks = layer_looked_at(summary)
    for number in range(min(len(summary.texts), MOST_TEXTS)):
        tokens = summary.tokens[number]
        own = next((each for each in summary.occurrences if each.text == number), None)
        row = None if own is None or looks is None else own.attends[looks]
        parts += _text_with_bars(summary.labels[number], tokens, own, row, width)
    if len(summary.texts) > MOST_TEXTS:
        parts.append(Text(f"… and {len(summary.texts) - MOST_TEXTS} more texts", style="dim"))
    if summary.occurrences and looks is not None:
        layer = summary.occurrences[0].attends[looks].layer
        each = " of each text's first" if len(summary.occurrences) > len(summary.texts) else ""
        note = f"bars: what {in_title(summary.word)}{each} looks at in layer {layer}, mean of heads; full at {FULL:.2f}"
        parts.append(Text(note, style="dim"))
    return [*parts, Text()]


def _text_with_bars(
    label: str, tokens: Sequence[Token], own: Occurrence | None, row: Attended | None, width: int
) -> list[RenderableType]:
    """Lines of tokens, each followed by the line of its bars; of a long text those around the followed word."""
    names = [spelled(token.text, 1000) for token in tokens]
    lines: list[list[int]] = [[]]
    used, room = 0, width - len(label) - 3
    for place, name in enumerate(names):
        if used and used + len(name) > room:
            lines.append([])
            used = 0
        lines[-1].append(place)
        used += len(name) + 1
    first = 0
    if len(lines) > MOST_LINES and own is not None:
        middle = next(n for n, line in enumerate(lines) if own.tokens[0] in line)
        first = max(0, min(middle - 1, len(lines) - MOST_LINES))
    shown_lines = lines[first : first + MOST_LINES]
    parts: list[RenderableType] = []
    for n, line in enumerate(shown_lines):
        written = Text(f"{label}  " if n == 0 else " " * (len(label) + 2), style="bold" if n == 0 else "")
        under = Text(" " * (len(label) + 2))
        for place in line:
            marked = own is not None and place in own.tokens
            style = "bold underline magenta" if marked else "dim" if tokens[place].special else ""
            written.append(names[place], style=style)
            written.append(" ")
            bar = " "
            if row is not None and row.weights is not None:
                bar = BARS[min(len(BARS) - 1, round(row.weights[place] / FULL * (len(BARS) - 1)))]
            under.append(bar * len(names[place]) + " ", style="dim" if tokens[place].special else "cyan")
        parts.append(written)
        if row is not None and row.weights is not None:
            parts.append(under)
    hidden = len(lines) - len(shown_lines)
    if hidden:
        parts.append(
            Text(f"   … {hidden} of {len(lines)} lines of its {len(tokens)} tokens are not shown", style="dim")
        )
    return parts
