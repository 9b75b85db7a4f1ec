"""A text cut into its tokens: each on a colour of its own, blanks kept, its id below."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from regard.display.terminal import COLOURS
from regard.text.quoting import visible
from regard.text.tokens import Token

CHARACTER = 0.105  # inches that a character takes, of a font of one width
LINE = 0.72  # inches from a line to the next


def token_strip(axes: Axes, tokens: Sequence[Token], *, width: float | int = 9) -> float:
    """Draw tokens side by side into axes measured in inches, on as many lines as the width takes, from the top left.

    Special tokens are grey, and stand on no colour. Returns the height that was used, in inches.
    """
    top = axes.get_ylim()[1]
    x, y = 0.15, top - 0.5
    for number, token in enumerate(tokens):
        name = visible(token.text)
        wide = max(len(name), len(str(token.id)) + 1) * CHARACTER + 0.04
        if x + wide > width and x > 0.15:
            x, y = 0.15, y - LINE
        colour = "#f4f4f4" if token.special else COLOURS[number % len(COLOURS)]
        axes.add_patch(Rectangle((x, y), wide, 0.32, facecolor=colour, edgecolor="white", linewidth=1))
        axes.text(x + wide / 2, y + 0.16, name.replace(" ", "·"), ha="center", va="center", size=10, family="monospace",
                  color="#777777" if token.special else "black", parse_math=False)  # fmt: skip
        axes.text(x + wide / 2, y - 0.13, str(token.id), ha="center", va="center", size=7.5, color="#444444")
        x += wide
    return top - y + 0.25
