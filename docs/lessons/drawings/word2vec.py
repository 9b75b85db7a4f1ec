"""A schematic figure of word2vec's two questions: from the middle to its neighbours, and from the neighbours to it."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drawings.sheet import INPUT, KEY, OUTPUT, QUERY, arrow, box, sheet, write

ROW = 0.42  # inches from a word to the next


def skip_gram_and_cbow(words: Sequence[str], middle: int, vocabulary: int, width: int) -> Figure:
    """Draw which words of a neighbourhood are given and which are guessed, with the sizes of both tables.

    words: the neighbourhood; middle: the place of its middle word. vocabulary, width: of the tables.
    """
    height = ROW * len(words) + 1.15
    figure, axes = sheet(10.6, height)
    around = [place for place in range(len(words)) if place != middle]
    _question(axes, 0.2, height, words, [middle], around, "skip-gram: the middle is given", vocabulary, width)
    _question(axes, 5.45, height, words, around, [middle], "CBOW: its neighbours are given", vocabulary, width)
    return figure


def _question(
    axes: Axes,
    x: float,
    height: float,
    words: Sequence[str],
    given: Sequence[int],
    guessed: Sequence[int],
    title: str,
    vocabulary: int,
    width: int,
) -> None:
    write(axes, x, height - 0.22, title, size=11, align="left", weight="bold")
    top = height - 0.85
    centre = top - ROW * (len(words) - 1) / 2 + 0.15
    size = f"\n{vocabulary:,} × {width}"
    box(axes, x + 1.3, centre - 0.4, 0.95, 0.8, "given, v" + size, QUERY, size=8)
    box(axes, x + 2.75, centre - 0.4, 0.95, 0.8, "guessed, u" + size, KEY, size=8)
    what = "its row" if len(given) == 1 else "mean of rows"
    arrow(axes, (x + 2.25, centre), (x + 2.75, centre))
    write(axes, x + 2.5, centre - 0.55, what, size=7.5)
    for place, word in enumerate(words):
        y = top - ROW * place
        if place in given:
            box(axes, x, y, 0.85, 0.3, word, INPUT, size=8)
            arrow(axes, (x + 0.85, y + 0.15), (x + 1.28, centre), colour=INPUT)
        if place in guessed:
            box(axes, x + 4.15, y, 0.85, 0.3, word, OUTPUT, size=8)
            arrow(axes, (x + 3.7, centre), (x + 4.13, y + 0.15), colour=OUTPUT)
