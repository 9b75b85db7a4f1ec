"""Declare the options of `regard map`: the whole attention matrix of one layer over a long text."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.checks import refuse_both
from regard.display.query import Progress, Query, option
from regard.errors import RegardError
from regard.files import check_readable
from regard.text.tokens import check_text

if TYPE_CHECKING:
    from regard.models.source import Source
    from regard.questions.map.answer import Matrix


@dataclass(frozen=True, kw_only=True)
class MapQuery(Query):
    """Show a layer's whole attention matrix for a long text: the most attended tokens and the strongest long links.

    --save stores only the layer shown.
    """

    summary = "Show a layer's whole attention matrix for a long text."
    heading = "Look at attention"
    examples = ("map page.txt --figure map.png", "map book.txt --layer 2 --window 512 --json map.json")
    served = False
    texts = ("FILE", "Text file in UTF-8.")
    single = True
    inputs = ("model", "window", "stride", "open_file")
    files = ("figure", "json", "html of traces", "save")
    saved_alone = True
    full = True

    layer: int | None = option(shown="chosen for the text; a note says why")
    head: int | None = option(shown="the mean of all heads")
    top: int = option(default=10, least=1)
    far: int | None = option(shown="64, or an eighth of a shorter text", least=0)

    def check_source(self, source: "Source", verb: str, outputs: Any) -> None:
        """Check that the options and files can be combined."""
        if source.open_file is not None:
            others = {"FILE": source.texts, "--window": source.window, "--model": source.model}
            refuse_both("--open", others, "the saved trace is shown as it is, pass one of them")
        if source.window is not None:
            if self.layer is None:
                raise RegardError("--window needs --layer: choose a layer, such as --layer 2")
            if outputs.save.file is not None:
                raise RegardError("--save: windows are read one at a time and not kept, so there is no trace to save")
            if outputs.html.file is not None:
                raise RegardError("--html: windows are read one at a time and not kept: use regard see --window")
        super().check_source(source, verb, outputs)

    def run(self, source: "Source", progress: Progress) -> "Matrix":
        """Trace a file's text, or read a saved trace, and return the matrix of a layer."""
        text = None if source.open_file is not None else read_file_argument(Path(source.texts[0]))
        from regard.questions.map.whole import map_of_source

        return map_of_source(source, text, progress, **vars(self))


def read_file_argument(file: Path) -> str:
    """Read the text of a UTF-8 file, without a byte order mark."""
    check_readable(file)
    content = file.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # error.start doesn't count a byte order mark of three bytes
        offset = error.start + len(content) - len(error.object)
        line = content.count(b"\n", 0, offset) + 1
        raise RegardError(
            f"{str(file)!r} is not UTF-8: byte 0x{content[offset]:02x} at {offset} (line {line}), {error.reason}"
        ) from error
    return check_text(text, repr(str(file)))
