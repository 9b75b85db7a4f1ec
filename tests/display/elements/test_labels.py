"""Names stand beside their points, not on one another, and inside the axes where there is room."""

from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from regard.display.elements.labels import drawn_text_width, framed_label_points


def test_crowded_names_keep_apart() -> None:
    figure = Figure(figsize=(7, 5))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    points = [(n % 4 / 20, n // 4 / 20) for n in range(12)] + [(1.0, 1.0)]
    labels = framed_label_points(axes, points, 7.0, 5.0)
    labels.keep_free(points, 5.0)
    for n, point in enumerate(points):
        labels.put(f"name {n}", point, 8.0)
    figure.canvas.draw()
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in axes.texts]  # without the lines to the points
    assert [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)] == []
    assert all(axes.get_window_extent().contains(box.x0, box.y0) for _, box in boxes)
    (a, _), (_, b) = axes.transData.transform([[1, 0], [0, 1]]) - axes.transData.transform([0, 0])
    assert abs(a - b) < 1e-6  # one scale on both axes


def test_a_name_is_written_where_it_is_crowded() -> None:
    axes = Figure().add_subplot()
    labels = framed_label_points(axes, [(0.0, 0.0), (1.0, 1.0)], 2.0, 2.0)
    for _ in range(12):
        labels.keep_free([(0.0, 0.0)], 200.0)
    labels.put("needed", (0.0, 0.0), 8.0)
    assert [text.get_text() for text in axes.texts] == ["needed"]
    assert drawn_text_width("水a") == 2.65
