"""A figure whose texts are shown as they are, and which a notebook shows by itself."""

import io
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.text import Text

FALLBACK_FONTS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Emoji", "Noto Sans", "Symbola", "Arial Unicode MS",
                  "Hiragino Sans", "Microsoft YaHei", "Segoe UI Emoji")  # fmt: skip
MISSING = "No installed font has "


class Plot(Figure):
    """A figure of any backend. A notebook shows it without pyplot, which would keep it and choose a backend."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()

    def draw(self, renderer: Any) -> None:
        """Draw all texts as they are; warn once of all characters that no installed font has."""
        with as_written(self), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            super().draw(renderer)
        codes = [int(said.split()[1]) for each in caught if (said := str(each.message)).startswith("Glyph ")]
        lost = dict.fromkeys(f"{chr(code)!r} ({unicodedata.name(chr(code), 'unnamed')})" for code in codes)
        svg = self.canvas.get_default_filetype() == "svg"
        then = "The SVG uses the fonts of the reader's computer." if svg else "They are drawn as boxes."
        if lost:
            warnings.warn(f"{MISSING}{', '.join(lost)}. {then}", stacklevel=2)


@contextmanager
def as_written(artist: Artist) -> Iterator[None]:
    """Show texts as they are, whatever the user's settings, also those that are made meanwhile."""
    fonts = write_texts_as_they_are(artist)
    with matplotlib.rc_context({"text.usetex": False, "text.parse_math": False, "font.sans-serif": fonts}):
        yield


def write_texts_as_they_are(artist: Artist) -> list[str]:
    """Write its texts without TeX and formulas, in fonts that have their characters; returns these."""
    here = fontManager.get_font_names()
    fonts = ["DejaVu Sans", *(name for name in FALLBACK_FONTS if name in here)]
    for text in artist.findobj(Text):
        text.set(fontfamily=[*fonts, "sans-serif"], usetex=False, parse_math=False)
    return fonts


def notes_of(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return what `Plot` warned of."""
    return list(dict.fromkeys(str(each.message) for each in caught if str(each.message).startswith(MISSING)))
