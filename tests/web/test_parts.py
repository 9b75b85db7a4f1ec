"""What the page's components compute before they draw: orders, places, axes, cells; in Node."""

import numpy as np
import pytest
import torch

from tests.support.node import call
from tests.web.tables import read_number
from tests.web.test_region import runs as made_runs


def test_rows_are_sorted_by_numbers_and_texts_and_nothing_comes_last() -> None:
    rows = [["b", 2.0], ["a10", None], ["a9", -3.0], [None, 7.0]]
    assert call("parts/sorting", "ordered", rows, None, True) == [0, 1, 2, 3]
    assert call("parts/sorting", "ordered", rows, 1, True) == [3, 0, 2, 1]
    assert call("parts/sorting", "ordered", rows, 1, False) == [2, 0, 3, 1]
    assert call("parts/sorting", "ordered", rows, 0, False) == [2, 1, 0, 3]  # a9 before a10


def test_the_nearest_point_is_found_and_none_out_of_reach() -> None:
    generator = np.random.default_rng(3)
    points = np.concatenate([generator.normal(0, 1, (900, 2)), generator.normal(5, 0.01, (300, 2))]).astype(np.float32)
    grid = call("cloud/grid", "gridOf", points.ravel().tolist())
    for place in [*generator.uniform(-3, 6, (12, 2)), points[1000], [50, 50]]:
        far = np.linalg.norm(points.astype(np.float64) - place, axis=1)
        expected = int(far.argmin()) if far.min() < 0.7 else -1
        assert call("cloud/grid", "nearest", grid, *map(float, place), 0.7) == expected
    one = call("cloud/grid", "gridOf", [2.0, 3.0])
    assert call("cloud/grid", "nearest", one, 2.1, 3.1, 0.2) == 0
    assert call("cloud/grid", "nearest", one, 2.1, 3.2, 0.2) == -1


def test_no_label_lies_on_another_or_on_a_point() -> None:
    generator = np.random.default_rng(2)
    points = generator.uniform([50, 50], [550, 350], (60, 2)).round().tolist()
    widths = generator.integers(20, 90, 60).tolist()
    frame = {"x": 0, "y": 0, "width": 600, "height": 400}
    boxes = call("parts/place_labels", "placeLabels", points, widths, 14, frame, 6)
    marks = [{"x": x - 6, "y": y - 6, "width": 12, "height": 12} for x, y in points]
    placed = [box for box in boxes if box]
    assert 20 < len(placed) <= 60
    for n, box in enumerate(placed):
        assert not any(overlap(box, other) for other in [*placed[:n], *marks])
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 600


def test_a_label_without_room_is_left_out() -> None:
    frame = {"x": 0, "y": 0, "width": 40, "height": 40}
    assert call("parts/place_labels", "placeLabels", [[20, 20]], [100], 14, frame, 6) == [None]


@pytest.mark.parametrize("values", [[0.0, 1.0], [-3e-5, 4e-5], [1234.0, 1234.0], [0.0, 0.0], [], [-7.0, 90.0, 12.0]])
def test_axes_hold_their_values_and_have_round_ticks(values: list[float]) -> None:
    axis = call("parts/ticks", "ticksOf", values)
    assert all(axis["low"] < value < axis["high"] for value in values)
    assert 2 <= len(axis["ticks"]) <= 11
    for tick in axis["ticks"]:
        assert read_number(tick["label"]) == pytest.approx(tick["value"], rel=1e-6, abs=1e-9)
    assert len({tick["label"] for tick in axis["ticks"]}) == len(axis["ticks"])


@pytest.mark.parametrize("head", [0, 1, None])
def test_runs_tell_what_a_mask_forbids_as_the_mask_does(head: int | None) -> None:
    allowed = np.random.default_rng(3).random((2, 9, 14)) < 0.6
    allowed[1, 4] = False  # no key at all
    runs = made_runs(allowed)
    expected = allowed.any(0) if head is None else allowed[head]
    for query, key in [(0, 0), (4, 3), (8, 13), *np.random.default_rng(4).integers(0, 9, (12, 2)).tolist()]:
        assert call("attention/mask", "allows", runs, head, query, key) == expected[query, key]


@pytest.mark.parametrize(
    ("i", "j", "allowed"), [(5, 6, True), (5, 7, False), (5, 2, True), (5, 1, False), (0, 0, True)]
)
def test_a_band_tells_what_a_mask_forbids(i: int, j: int, allowed: bool) -> None:
    assert call("attention/mask", "allows", {"kind": "band", "low": -3, "high": 1}, None, i, j) is allowed


@pytest.mark.parametrize("head", [0, 1, None])
def test_fewer_cells_of_an_overview_are_means_of_weights(head: int | None) -> None:
    """1100 queries in 256 rows are 4 or 5 in each: cells count for as many weights as they are of."""
    weights = torch.rand(2, 1100, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    overview = torch.stack([means(each, 256, 30) for each in weights])
    largest = overview.amax((1, 2))
    codes = ((overview / largest[:, None, None]).sqrt() * 65535).round().long()
    described = {"rows": 256, "cols": 30, "largest": largest.tolist()}
    found = call(
        "views/fewer_cells", "fewer", codes.flatten().tolist(), described, [1100, 30], head, [16, 7]
    )  # 16 divides 256: the edges of cells are the weights' own
    shown = weights.mean(0) if head is None else weights[head]
    rows = [slice(r * 1100 // 16, (r + 1) * 1100 // 16) for r in range(16)]
    cols = [slice(c * 30 // 7, (c + 1) * 30 // 7) for c in range(7)]
    expected = torch.tensor([[float(shown[r, c].mean()) for c in cols] for r in rows])
    assert float((torch.tensor(found).view(16, 7) - expected).abs().max()) < 1e-4


def means(matrix: torch.Tensor, rows: int, cols: int) -> torch.Tensor:
    """The mean of every cell of a matrix in rows × cols cells."""
    height, width = matrix.shape
    return torch.tensor(
        [
            [
                float(
                    matrix[
                        r * height // rows : (r + 1) * height // rows, c * width // cols : (c + 1) * width // cols
                    ].mean()
                )
                for c in range(cols)
            ]
            for r in range(rows)
        ]
    )


def overlap(a: dict[str, float], b: dict[str, float]) -> bool:
    across = a["x"] < b["x"] + b["width"] and b["x"] < a["x"] + a["width"]
    return across and a["y"] < b["y"] + b["height"] and b["y"] < a["y"] + a["height"]


def test_words_in_texts_are_sorted_and_read_as_their_texts() -> None:
    rows = [[{"left": left, "form": "bank", "right": "."}] for left in ("the ", "a ", "The 2", "the 10")]
    assert call("parts/sorting", "ordered", rows, 0, False) == [1, 2, 3, 0]  # numbers by value
    assert call("parts/sorting", "formatted", rows[0][0], {"name": "", "digits": None, "bar": False}) == "the bank."


def test_two_axes_of_one_scale_have_as_many_pixels_a_unit() -> None:
    xs, ys = [0.0, 1.0, 4.0], [10.0, 11.0]
    across, up = call("parts/ticks", "evenRanges", xs, ys, 400, 200)
    assert (across, up) == ([0, 4], [9.5, 11.5])  # a hundred pixels a unit, the middle stays
    across, up = call("parts/ticks", "evenRanges", ys, xs, 400, 200)
    assert (across, up) == ([6.5, 14.5], [0, 4])
    assert call("parts/ticks", "evenRanges", [1.0], [2.0], 400, 200) == [[1], [2]]  # no extent: as they are


def test_the_number_farthest_from_0_is_found() -> None:
    assert call("parts/sorting", "largestCell", [[0.5, None], [-2.0, 1.0]]) == [1, 0]
    assert call("parts/sorting", "largestCell", [[None]]) is None
