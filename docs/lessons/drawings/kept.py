"""A picture kept as a file, and shown by a notebook or a built page as well."""

import base64
import html
import os
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from regard.files import whole

FOLDER = "REGARD_OUT"  # the variable that names where pictures are kept
KINDS = {".svg": "image/svg+xml", ".png": "image/png"}


@dataclass(frozen=True)
class Picture:
    """A picture's file, and in words what it shows."""

    file: Path
    shows: str

    def _repr_html_(self) -> str:
        """The picture with its file's content in the page, so that nothing has to be found beside it."""
        content = base64.b64encode(self.file.read_bytes()).decode("ascii")
        kind = KINDS[self.file.suffix.lower()]
        return f'<img alt="{html.escape(self.shows)}" style="max-width: 100%" src="data:{kind};base64,{content}">'


def keep(figure: Figure, name: str, shows: str) -> Picture:
    """Write a figure into the folder that REGARD_OUT names, or out/lessons; SVG or PNG by the name's ending.

    An SVG's letters are drawn as outlines: it looks the same wherever it is opened, and `shows` says it in words.
    """
    file = Path(os.environ.get(FOLDER, "out/lessons")) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    svg = file.suffix.lower() == ".svg"
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "regard"}), whole(file) as temporary:
        kind = file.suffix.lower().removeprefix(".")
        figure.savefig(temporary, format=kind, dpi=130, metadata={"Date": None} if svg else None)
    return Picture(file, shows)
