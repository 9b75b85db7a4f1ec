"""Words in two columns, with lines as wide as the attention between them: the picture that most texts draw."""

from collections.abc import Sequence

from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

FOLLOWED = "#bb3311"  # the lines of the queries that are followed
LEAST = 0.02  # weights below it are not drawn


def links(
    axes: Axes,
    weights: Float[Tensor, "L S"],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str = "",
    followed: Sequence[int] = (),
    least: float | int = LEAST,
) -> None:
    """Draw lines from queries (left) to keys (right), as wide and as dark as their weights.

    followed: queries whose lines alone are drawn, and beside each key the largest weight that one of them gives it; by
    default all are drawn. least: the smallest weight that is drawn.
    """
    drawn = list(followed) or list(range(len(queries)))
    tall = max(len(queries), len(keys))
    starts = [n + (tall - len(queries)) / 2 for n in range(len(queries))]
    ends = [n + (tall - len(keys)) / 2 for n in range(len(keys))]
    colour = FOLLOWED if followed else "#0072b2"
    for query in drawn:
        for key, weight in enumerate(weights[query].tolist()):
            if weight >= least:
                axes.plot((0, 1), (starts[query], ends[key]), color=colour, linewidth=7 * weight,
                          alpha=min(1.0, 0.25 + weight), solid_capstyle="butt")  # fmt: skip
    for n, word in enumerate(queries):
        bold = "bold" if n in followed else "normal"
        axes.text(-0.04, starts[n], word, ha="right", va="center", size=9, weight=bold, parse_math=False)
    for n, word in enumerate(keys):
        share = float(weights[list(followed), n].max()) if followed else 0.0
        name = f"{word}  {share:.2f}" if share >= least else word
        axes.text(1.04, ends[n], name, ha="left", va="center", size=9, parse_math=False)
    axes.set(xlim=(-0.7, 1.9), ylim=(tall - 0.4, -0.6))
    axes.set_title(title, size=10)
    axes.set_axis_off()
