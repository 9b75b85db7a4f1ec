"""A picture in the shape of a slide: all of it is on it, in letters that can be read, or is named as left out."""

from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest
from matplotlib.text import Text

from regard.display.elements.canvas import all_axes, stack_rows_in_figure, write_figure
from regard.display.elements.slide import LEFT_OUT, Row, slide
from regard.display.panels import Bars
from regard.display.picture import paint
from regard.errors import RegardError
from regard.questions.map.whole import matrix
from regard.questions.see.answer import seen
from tests.display.samples import plain


def fits(figure: Any, file: Path) -> list[str]:
    """Write a slide: nothing is cut, no axes lie upon others, no letter is smaller than ten pixels. Returns notes."""
    notes = write_figure(figure, file)
    assert matplotlib.image.imread(file).shape[:2] == (1080, 1920)
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer).padded(-2) for axes in all_axes(figure)]
    for box in boxes:
        assert box.x0 >= -3
        assert box.y0 >= -3
        assert box.x1 <= 1923
        assert box.y1 <= 1083
    drawn = [axes.get_window_extent(renderer) for axes in all_axes(figure)]
    for one, other in combinations(range(len(boxes)), 2):
        assert not drawn[one].overlaps(boxes[other].padded(-2)), "one part lies upon another"
    ends_are_whole(figure)
    texts = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
    assert min(text.get_fontsize() * figure.dpi / 72 for text in texts) >= 10
    return notes


def ends_are_whole(figure: Any) -> None:
    """No mark of a line or a cloud is cut by the edge of its axes."""
    for axes in all_axes(figure):
        box = axes.get_window_extent()
        for line in (each for each in axes.lines if each.get_marker() not in ("None", "", None)):
            size = line.get_markersize() * figure.dpi / 72 / 2 - 1
            for x, y in axes.transData.transform(line.get_xydata()):
                assert box.x0 + size <= x <= box.x1 - size, (axes.get_title(), line.get_gid())
                assert box.y0 + size <= y <= box.y1 - size, (axes.get_title(), line.get_gid())


def rows(count: int, high: float = 3.0, *, wide: float = 0.0, first: int = 99) -> list[Row]:
    return [
        Row(high, lambda part, place, n=n: part.add_subplot(place).set_title(f"row {n}"), f"row {n}", n < first, wide)
        for n in range(count)
    ]


def drawn(figure: Any) -> list[str]:
    return [axes.get_title() for axes in all_axes(figure)]


def test_what_has_room_is_drawn_and_the_rest_is_named_to_the_last(tmp_path: Path) -> None:
    assert drawn(slide(rows(2))) == ["row 0", "row 1"]
    assert fits(slide(rows(2)), tmp_path / "a.png") == []
    figure = slide(rows(9, first=7))
    assert drawn(figure) == ["row 0", "row 1", "row 2", "row 3"]
    assert fits(figure, tmp_path / "b.png") == [
        "not on this slide, which has no room for it: row 4, row 5, row 6, row 7, row 8"
    ]
    late = [*rows(3, first=1), *rows(2, 4.0)]  # the second and the third are not of the first screen
    assert drawn(slide(late)) == ["row 0", "row 0", "row 1"]
    (said,) = (each for each in slide(rows(12)).findobj(Text) if each.get_gid() == LEFT_OUT)
    assert said.get_text().endswith("row 8 and 3 more")
    assert drawn(slide(rows(1, 40.0))) == ["row 0"]  # what is too high alone has what room there is


def test_narrow_parts_stand_side_by_side(tmp_path: Path) -> None:
    figure = slide(rows(6, 4.0, wide=4.5), ["a title"])
    assert len(drawn(figure)) == 6
    assert fits(figure, tmp_path / "a.png") == []
    left = [round(axes.get_window_extent().x0) for axes in all_axes(figure)]
    assert left[:3] == left[3:] == sorted(set(left))


def test_slides_of_panels_and_of_answers_with_pictures_of_their_own(bank, minilm, tmp_path: Path) -> None:
    panels = [panel for panel in plain() if panel.picture or isinstance(panel, Bars)]
    assert fits(paint(panels, "A title", "slide"), tmp_path / "a.png") == []
    followed = seen(bank, "bank", references=[minilm.trace("money")])
    notes = followed.draw(tmp_path / "b.png", "slide")
    assert [note.split(": ")[0] for note in notes] == ["not on this slide, which has no room for it"]
    assert "every layer of text 1, every layer of text 2" in notes[0]
    assert fits(followed.plot(shape="slide"), tmp_path / "c.png") == notes
    write_figure(figure := followed.plot(), tmp_path / "tall.pdf")
    ends_are_whole(figure)
    assert (tmp_path / "tall.pdf").read_bytes().startswith(b"%PDF")
    assert fits(seen(bank[:1], "bank").plot(shape="slide"), tmp_path / "path.png") != []
    assert fits(seen(bank[:1]).plot(shape="slide"), tmp_path / "d.png") == []
    long = minilm.trace("the river bank " + "and the old man at sea " * 12)
    assert fits(matrix(long, 2).plot(shape="slide"), tmp_path / "e.png") == []
    assert matrix(long, 2).plot().get_size_inches().tolist() != [16.0, 9.0]
    with pytest.raises(RegardError, match="shape: given 'round', needs one of tall, slide"):
        followed.plot(shape="round")


def test_a_tall_picture_is_as_it_was() -> None:
    assert stack_rows_in_figure(rows(9), 13.0).get_size_inches().tolist() == [13.0, 27.0]
