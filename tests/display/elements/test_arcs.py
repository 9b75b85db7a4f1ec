"""Arcs begin at the query and end at the key, darker and wider for more weight; names do not lie on one another."""

from itertools import combinations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regard.display.elements.arcs import Link, draw_arcs


def painted(links: list[Link], named: dict[int, str], length: int = 101):
    figure = Figure(figsize=(7, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    draw_arcs(axes, links, length, named, (6.5, 4.5), followed=40)
    figure.canvas.draw()
    return axes


def test_arcs_lead_from_query_to_key() -> None:
    axes = painted([Link(40, 10, 0.25), Link(40, 90, 0.75)], {10: "ten", 40: "word", 90: "ninety"})
    arcs = {line.get_gid(): line for line in axes.lines if (line.get_gid() or "").startswith("arc")}
    assert set(arcs) == {"arc 40 10", "arc 40 90"}
    for name, ends in (("arc 40 10", (10, 40)), ("arc 40 90", (40, 90))):
        x, y = arcs[name].get_data()
        np.testing.assert_allclose(sorted((x[0], x[-1])), ends)
        np.testing.assert_allclose(y[[0, -1]], 0, atol=1e-9)
    near, far = arcs["arc 40 10"], arcs["arc 40 90"]
    assert max(far.get_ydata()) > max(near.get_ydata())
    assert far.get_linewidth() > near.get_linewidth()
    keys = [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "v"]
    queries = [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "o"]
    assert sorted(keys) == [10, 90]
    assert queries == [40, 40]


def test_names_and_labels_keep_apart() -> None:
    links = [Link(40 + n, n, 0.5 - n / 100, str(n)) for n in range(12)]
    axes = painted(links, {place: f"name{place}" for link in links for place in (link.query, link.key)})
    boxes = [(text.get_text(), text.get_window_extent()) for text in axes.texts]
    assert len(boxes) == 24 + 12
    assert [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)] == []


def test_nothing_to_link_is_a_line() -> None:
    axes = painted([], {})
    assert [line.get_gid() for line in axes.lines] == [None]
