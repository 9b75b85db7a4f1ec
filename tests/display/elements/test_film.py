"""A film: its frames in their order, and the last one longer."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageSequence

from regard.display.elements.film import STAYS, write_film


def test_each_frame_is_drawn_once_and_the_last_stays(tmp_path: Path) -> None:
    figure = Figure(figsize=(1, 1))
    FigureCanvasAgg(figure)

    def draw(n: int) -> None:
        figure.set_facecolor((n / 2, 0, 0))

    assert write_film(figure, draw, 3, tmp_path / "a.gif", fps=5) == []
    with Image.open(tmp_path / "a.gif") as film:
        reds = [frame.convert("RGB").getpixel((3, 3))[0] for frame in ImageSequence.Iterator(film)]
        lasts = sum(frame.info["duration"] for frame in ImageSequence.Iterator(film))
    assert list(dict.fromkeys(reds)) == sorted(set(reds))
    assert len(set(reds)) == 3
    assert lasts == 200 * (3 + STAYS)
