"""Panels of positions fit one screen, whichever and however many they are, and draw the encoding's numbers."""

import numpy as np
import pytest
import torch

from regard.display.elements.canvas import all_axes
from regard.display.panels import Heat, Table
from regard.display.terminal_parts import plain_lines_of_parts
from regard.questions.positions.answer import Positions, positions
from regard.questions.positions.encodings import alike, encoding, positions_per_rotary_turn, slopes


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("kind", ["sinusoidal", "rotary", "alibi", "learned"])
@pytest.mark.parametrize("length", [1, 2, 300])
def test_one_screen(kind: str, width: int, length: int) -> None:
    matrices = encoding("sinusoidal" if kind == "learned" else kind, length, 64)
    lines = plain_lines_of_parts(
        Positions(kind, matrices, "a model" if kind == "learned" else None).shown(width), width
    )
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40
    assert any(f"{kind.capitalize()} positions" in line for line in lines)
    assert not any("nan" in line for line in lines)


def table(found: Positions) -> Table:
    (own,) = (panel for panel in found.panels() if isinstance(panel, Table))
    return own


def test_the_table_has_the_numbers() -> None:
    waves, turned, taken = (positions(kind, 100, 64) for kind in ("sinusoidal", "rotary", "alibi"))
    assert table(waves).rows == [list(each) for each in alike(waves.matrices[0])]
    every = positions_per_rotary_turn(turned.matrices)
    assert [row[0] for row in table(turned).rows] == [0, 3, 7, 10, 14, 17, 21, 24, 28, 31]
    assert all(row[1:] == [every[row[0]], 100 / every[row[0]]] for row in table(turned).rows)  # type: ignore[index]
    for head, (row, slope) in enumerate(zip(table(taken).rows, slopes(taken.matrices), strict=True)):
        assert row == pytest.approx([head, -slope, *np.exp([-slope, -8 * slope, -64 * slope])])


@pytest.mark.parametrize(("kind", "said"), [("sinusoidal", "added"), ("rotary", "turned"), ("alibi", "score")])
def test_every_matrix_is_drawn(kind: str, said: str) -> None:
    found = positions(kind, 13, 8)
    figure = found.plot()
    images = [axes.images[0] for axes in all_axes(figure) if axes.images]
    assert len(images) == len(found.matrices)
    for image, matrix in zip(images, found.matrices, strict=True):
        np.testing.assert_array_equal(image.get_array(), matrix.double().numpy())
        low, high = image.get_clim()
        assert high == pytest.approx(float(matrix.abs().max() if kind == "alibi" else found.matrices.abs().max()))
        assert low == -high
    told = [figure.subfigs[0].get_suptitle(), *(axes.get_title() for axes in all_axes(figure))]
    assert said in " ".join(" ".join(told).split())


def test_colours_of_a_trained_table_end_before_its_largest_numbers() -> None:
    trained = 0.1 * torch.ones(1, 40, 50)
    trained[0, 3, 4] = 7.0
    found = Positions("learned", trained, "a model")
    (grid,) = (panel for panel in found.panels() if isinstance(panel, Heat))
    assert grid.largest == pytest.approx(0.1)
    assert grid.caption.endswith("single numbers reach 0.10 and 7.00, beyond the darkest colours.")
    assert found.plot().subfigs[0].get_suptitle().startswith("Learned positions of a model, 40 × 50\nWhat is added")


def test_a_terminal_shows_the_corners_of_the_matrices() -> None:
    text = "\n".join(plain_lines_of_parts(positions("sinusoidal", 11).shown(80, everything=True), 80))
    assert "0.8415" in text
    assert "5 more rows and 58 more columns" in text
