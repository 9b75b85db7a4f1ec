"""The cells, differences and paths that are drawn are the evolution's; names of paths keep apart."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from PIL import Image

from regard.display.elements.canvas import all_axes
from regard.questions.evolve.answer import Evolution
from regard.questions.evolve.picture import paint_evolution
from tests.support.pictures import axes_with, framed


@pytest.fixture(scope="module")
def found() -> Evolution:
    """Fifteen steps of a causal head on five tokens, made up."""
    random = np.random.default_rng(3)
    weights = np.tril(random.random((15, 5, 5)) + np.linspace(0, 3, 15)[:, None, None] * np.eye(5))
    weights /= weights.sum(-1, keepdims=True)
    change = np.abs(np.diff(weights, axis=0)).mean((1, 2))
    paths = random.normal(size=(5, 15, 2)).cumsum(1)
    names = ["to", "be", "or", "not", "$x$"]
    return Evolution(
        what="attention", layer=0, head=1, steps=list(range(0, 150, 10)),
        queries=names, keys=names, weights=weights.tolist(), entropy=[1.0] * 15, change=[0.0, *change.tolist()],
        embedded=names, paths=[[(x, y) for x, y in path] for path in paths.tolist()], share=(0.5, 0.25),
    )  # fmt: skip


def drawn(axes) -> np.ndarray:
    return np.ma.filled(axes.images[0].get_array().astype(float), np.nan)


def test_the_first_the_last_and_their_difference(found: Evolution) -> None:
    figure = paint_evolution(found)
    weights = np.array(found.weights)
    future = np.triu(np.ones((5, 5), bool), 1)
    for title, expected in (
        ("step 0: the first", weights[0]),
        ("step 140: the last", weights[-1]),
        ("the difference: step 140 less step 0", weights[-1] - weights[0]),
    ):
        (axes,) = axes_with(figure, title)
        np.testing.assert_allclose(drawn(axes), np.where(future, np.nan, expected))
    i, j = found.most_changed()
    assert abs(weights[-1] - weights[0]).max() == abs(weights[-1] - weights[0])[i, j]
    assert framed(axes) == [(i, j)]
    at = "itself" if i == j else f"“{found.keys[j]}”"
    assert (
        f"most changed: “{found.queries[i]}” looks at {at}, {weights[0, i, j]:.2f} at step 0, "
        f"{weights[-1, i, j]:.2f} at step 140"
    ) in figure.subfigs[0].get_suptitle()
    assert "grey: no weight at any step" in figure.subfigs[0].get_suptitle()


def test_the_steps_between_have_the_colours_of_the_large_difference(found: Evolution) -> None:
    figure = paint_evolution(found)
    small = [axes for axes in all_axes(figure) if axes.get_title().startswith("step ") and ":" not in axes.get_title()]
    assert len(small) == 12
    largest = max(np.abs(found.from_start(n)).max() for n in range(15))
    for axes in small:
        n = found.steps.index(int(axes.get_title().removeprefix("step ")))
        np.testing.assert_allclose(np.nan_to_num(drawn(axes)), found.from_start(n))
        assert axes.images[0].get_clim() == (-largest, largest)
        assert n > 0  # the first less itself would show nothing
    two = replace(found, steps=[0, 10], weights=found.weights[:2], entropy=found.entropy[:2], change=found.change[:2],
                  paths=[path[:2] for path in found.paths])  # fmt: skip
    titles = [axes.get_title() for axes in all_axes(paint_evolution(two))]
    assert [title for title in titles if title == "step 10"] == []  # it is the large difference


def test_lines_and_paths(found: Evolution) -> None:
    figure = paint_evolution(found)
    limits = set()
    for title, first, values in (("entropy in nats", 0, found.entropy), ("mean change", 1, found.change)):
        (axes,) = axes_with(figure, title)
        assert list(axes.lines[0].get_xdata()) == found.steps[first:]  # before the first step there is none
        assert list(axes.lines[0].get_ydata()) == values[first:]
        limits.add(axes.get_xlim())
    assert len(limits) == 1
    (axes,) = axes_with(figure, "learned embeddings, the later the darker (a plane with 75% of the variance)")
    ends = {line.get_gid(): tuple(line.get_xydata()[0]) for line in axes.lines}
    assert ends == {f"end {name}": path[-1] for name, path in zip(found.embedded, found.paths, strict=True)}
    for part, path in zip(axes.collections, found.paths, strict=True):
        np.testing.assert_allclose([segment[0] for segment in part.get_segments()], path[:-1])
    FigureCanvasAgg(figure)
    figure.canvas.draw()
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in axes.texts]  # without the lines to the points
    assert {name for name, _ in boxes} == set(found.embedded)
    assert [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)] == []


def test_nothing_changed_one_step_and_no_embeddings_are_said_as_they_are(found: Evolution) -> None:
    still = replace(found, weights=[found.weights[0]] * 15)
    assert "no weight changed" in paint_evolution(still).subfigs[0].get_suptitle()
    assert still.most_changed() is None
    one = replace(found, steps=[7], weights=found.weights[:1], entropy=[1.0], change=[0.0],
                  paths=[path[:1] for path in found.paths])  # fmt: skip
    assert paint_evolution(one).subfigs[0].get_suptitle().startswith(f"{found.title()}: step 7")
    assert axes_with(paint_evolution(one), "the difference") == []
    assert axes_with(paint_evolution(replace(found, embedded=[], paths=[])), "learned embeddings") == []
    assert len(paint_evolution(replace(one, embedded=[], paths=[])).subfigs) == 1


def test_the_film_has_a_frame_a_step_and_stays_at_the_end(found: Evolution, tmp_path: Path) -> None:
    short = replace(found, steps=found.steps[:3], weights=found.weights[:3], entropy=found.entropy[:3],
                    change=found.change[:3], paths=[path[:3] for path in found.paths])  # fmt: skip
    assert short.draw(tmp_path / "a.gif") == []
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames in (3, 7)  # the last frame, repeated, may be one that lasts longer
    assert short.draw(tmp_path / "a.svg") == []
    assert "$x$" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_a_line_of_the_head_in_which_induction_formed(found: Evolution) -> None:
    rising = [[[0.01, n / 15]] for n in range(15)]
    (axes,) = axes_with(paint_evolution(replace(found, induction=rising)), "induction of head L0H1")
    (line,) = axes.lines
    assert list(line.get_xdata()) == found.steps
    assert list(line.get_ydata()) == [n / 15 for n in range(15)]
    flat = replace(found, induction=rising[:1] * 15)
    assert not [axes for axes in all_axes(paint_evolution(flat)) if "induction" in axes.get_title()]
