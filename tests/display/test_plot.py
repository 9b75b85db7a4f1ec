"""A plot shows its texts as they are, in a notebook too, and says once which characters no font has."""

import io
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest
from PIL import Image

from regard.display.canvas import empty_figure
from regard.display.figure import paint
from regard.display.panels import Bars

LOST = chr(0xE123)  # for private use: no font has it


def bars(name: str) -> Any:
    return paint([Bars(name=name, title=name, parts=[(name, 1.0)], unit="weight")], name)


def test_a_notebook_has_its_picture_and_pyplot_does_not_keep_it() -> None:
    backend, kept = matplotlib.get_backend(), plt.get_fignums()
    with Image.open(io.BytesIO(bars("bank")._repr_png_())) as image:
        assert (image.format, min(image.size) > 100) == ("PNG", True)
    assert (matplotlib.get_backend(), plt.get_fignums()) == (backend, kept)


@pytest.mark.parametrize("settings", [{"text.usetex": True}, {"text.parse_math": True}])
def test_texts_are_neither_tex_nor_formulas(minilm, settings) -> None:
    trace = minilm.trace("a $x^$ b_c {%")
    with matplotlib.rc_context(settings):  # as TeX, which is not installed, or as a formula these would raise
        for figure in (bars("a $x^$ b_c {%"), whole := trace.attention[0].plot().figure):
            figure.savefig(io.BytesIO(), format="png")
    plt.close(whole)


def test_characters_without_a_font_are_one_warning() -> None:
    figure = empty_figure(3.0, 2.0, f"a {LOST} of {LOST}")
    figure.add_subplot().set_xlabel(f"{LOST} and {chr(0xE124)}")
    with pytest.warns(UserWarning, match=r"No installed font has .+ue123.+ue124.+ boxes") as caught:
        figure.savefig(io.BytesIO())
    assert len(caught) == 1
