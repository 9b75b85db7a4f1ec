"""Declare the options of `regard map`: the whole attention matrix of one layer over a long text."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.checks import from_zero, refuse_both
from regard.display.query import Progress, Query, option
from regard.errors import RegardError
from regard.files import check_readable

if TYPE_CHECKING:
    from regard.models.source import Source
    from regard.questions.map.answer import Matrix


@dataclass(frozen=True, kw_only=True)
class MapQuery(Query):
    """Show a layer's whole attention matrix for a long text: the most attended tokens and the strongest long links.

    --save stores only the layer shown.
    """

    summary: ClassVar[str] = "Show a layer's whole attention matrix for a long text."
    served: ClassVar[bool] = False
    texts: ClassVar[tuple[str, str]] = ("FILE", "Text file in UTF-8.")
    single: ClassVar[bool] = True
    inputs: ClassVar[tuple[str, ...]] = ("model", "window", "stride", "open_file")
    files: ClassVar[tuple[str, ...]] = ("figure", "json", "html of traces", "save")
    saved_alone: ClassVar[bool] = True
    full: ClassVar[bool] = True

    layer: int | None = option(shown="chosen for the text; a note says why")
    head: int | None = option(shown="the mean of all heads")
    top: int = option(default=10, least=1)
    far: int = option(default=64, least=0)

    def check_source(self, source: "Source", verb: str, outputs: Any) -> None:
        """Refuse options and files that do not go together."""
        if source.open_file is not None:
            others = {"FILE": source.texts, "--window": source.window, "--model": source.model}
            refuse_both("--open", others, "the saved trace is shown as it is, give one of them")
        if source.window is not None:
            if self.layer is None:
                raise RegardError("--window needs --layer: choose a layer, such as --layer 2")
            if outputs.save.file is not None:
                raise RegardError("--save: windows are read one at a time and not kept, so there is no trace to save")
            if outputs.html.file is not None:
                raise RegardError("--html: windows are read one at a time and not kept: use regard see --window")
        super().check_source(source, verb, outputs)

    def run(self, source: "Source", progress: Progress) -> "Matrix":
        """Read a file's text, or a saved trace, and go through the matrix of a layer. Windows are not kept."""
        text = "" if source.open_file is not None else read_file_argument(Path(source.texts[0]))
        from regard.capture.options import report_layers_of_pass
        from regard.models.states import count_layers
        from regard.questions.map.whole import chosen_layer, matrix, windowed

        layer, advance = self.layer, _parts_of(progress, 2)
        if source.open_file is not None:
            trace = source.read_one("map")
        else:
            model = source.load(source.model)
            layer = None if layer is None else from_zero("layer", layer, count_layers(model), f"{model.name} has")
            if source.window is not None:
                assert layer is not None  # as --window needs it
                plan, windows = model.stream(text, window=source.window, stride=source.stride, layers=[layer])
                step = _parts_of(progress, 1)
                return windowed(plan, windows, layer, self.head, top=self.top, far=self.far, progress=step)
            with report_layers_of_pass(model._session.original, advance):
                trace = model.trace(text, layers=None if layer is None else [layer], logits=False)
        layer, reason = chosen_layer(trace, layer, self.head)
        show = partial(matrix, top=self.top, far=self.far, progress=advance)
        return replace(show(trace, layer, self.head), why=reason)


def _parts_of(progress: Progress, of: int) -> Callable[[float], None]:
    """Return a function that is called with each part that is done, and reports their sum. of: the whole."""
    done = 0.0

    def advance(part: int | float) -> None:
        nonlocal done
        done += part
        progress(min(done, of), of)

    return advance


def read_file_argument(file: Path) -> str:
    """A file's text, without the mark of its encoding (BOM) where it begins with one."""
    from regard.text.tokens import check_text

    check_readable(file)
    found = file.read_bytes()
    try:
        text = found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # What was decoded may begin after a mark of three bytes, from which the position is counted.
        place = error.start + len(found) - len(error.object)
        line = found.count(b"\n", 0, place) + 1
        raise RegardError(
            f"{str(file)!r} is not UTF-8: byte 0x{found[place]:02x} at {place} (line {line}), {error.reason}"
        ) from error
    return check_text(text, repr(str(file)))
