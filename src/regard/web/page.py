"""Put a page together: the texts of some traces, their attention calls, what was found, as data that a browser reads.

`web/src/data/format.ts` says what each part is. Numbers stand beside the data, in a `NumberStore`.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Protocol, runtime_checkable

from regard.images import Box, Patches
from regard.text.quoting import direction, quoted, text_with_control_pictures, visible
from regard.text.tokens import Token
from regard.text.words import words
from regard.trace.status import Status, exactness, note_sentences
from regard.version import __version__
from regard.web.numbers import Data, Encoding, NumberStore

FORMAT, VERSION = "regard page", 1
SCREEN = 900  # pixels of a picture's longer side


@dataclass
class Page:
    """A page that is being put together; `data()` is what format.ts calls Page.

    layers, heads: the numbers of those that it has, None for all. steps_of: the layers whose steps it has,
    values_alone: without what follows values. optional: a sentence on the size of steps. tokens: of all.
    """

    title: str
    findings: Sequence[str] = ()
    status: list[str] = field(default_factory=list)
    model: str | None = None
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    steps_of: tuple[int, ...] | None = ()
    values_alone: bool = False
    optional: str = ""
    tokens: int = 0
    numbers: NumberStore = field(default_factory=NumberStore)
    opening: Data = field(default_factory=lambda: {"view": "tokens", "call": 0, "head": None, "token": None})
    texts: list[Data] = field(default_factory=list)
    calls: list[Data] = field(default_factory=list)
    scores: list[Data] = field(default_factory=list)
    panels: list[Data] = field(default_factory=list)
    alignment: list[Data] = field(default_factory=list)
    steps: list[Data] = field(default_factory=list)
    comparisons: list[Data] = field(default_factory=list)
    overview: Data | None = None

    @property
    def encoding(self) -> Encoding:
        """How vectors are written."""
        return self.numbers.encoding

    def data(self) -> Data:
        """Make the page's data, in which control characters are their pictures: a text may not turn what is shown."""
        first = {"view": "overview"} if self.overview and self.opening["view"] == "tokens" else {}
        data: Data = {
            "format": FORMAT, "version": VERSION, "made_by": f"regard {__version__}",
            "title": " ".join(self.title.split()), "model": self.model, "findings": list(self.findings),
            "status": self.status, "opening": self.opening | first,
            "texts": self.texts, "calls": self.calls, "heads": self.scores,
            "panels": self.panels, "alignment": self.alignment, "steps": self.steps,
            "comparisons": self.comparisons, "overview": self.overview,
        }  # fmt: skip
        return {name: page_data_with_pictures(each) for name, each in data.items()}

    def add_text(self, text: Data) -> int:
        """Add a text; returns its number."""
        self.texts.append(text)
        return len(self.texts) - 1

    def add_call(self, call: Data) -> int:
        """Add a call; returns its number."""
        self.calls.append(call)
        return len(self.calls) - 1

    def largest_difference(self) -> float:
        """The largest difference between the weights of the page and the library's, of all calls."""
        return max((float(str(call["difference"])) for call in self.calls), default=0.0)


def text_data(
    name: str, text: str, tokens: Sequence[Token], sinks: Iterable[int] = (), patches: Patches | None = None
) -> Data:
    """Write a text. name: "text 1", "source". sinks: the numbers of the tokens that are attention sinks.

    patches: where it is a picture, and where they lie is known.
    """
    own = [word for word in words(tokens) if not tokens[word[0]].special] if patches is None else []
    picture: Data = {} if patches is None or patches.seen is None else {"picture": picture_data(patches, patches.seen)}
    numbers = {n: number for number, word in enumerate(own) for n in word}
    turns = [token.turn for token in tokens]
    data: Data = {
        "name": name,
        "text": text,
        "direction": direction(text),
        "tokens": {
            "text": [token.text for token in tokens],
            "start": [token.start for token in tokens],
            # a blank that a tokenizer puts before a text is not the text's first character
            "end": [t.start if t.text.isspace() and t.characters.strip() else t.end for t in tokens],
            "special": [n for n, token in enumerate(tokens) if token.special],
            "sinks": sorted(sinks),
            "word": [numbers.get(n) for n in range(len(tokens))],
            **({"turn": turns} if any(turns) else {}),
        },
    }
    return data | picture


def picture_data(patches: Patches, seen: Box) -> Data:
    """Write a picture, small enough for a screen, and where on it the patches lie, in parts of its sides."""
    pixels = patches.picture.pixels
    width, height = pixels.size
    small = pixels.copy()
    small.thumbnail((SCREEN, SCREEN))
    file = BytesIO()
    small.save(file, "JPEG", quality=85)
    return {
        "src": f"data:image/jpeg;base64,{b64encode(file.getvalue()).decode()}", "size": [width, height],
        "rows": patches.rows, "columns": patches.columns, "first": patches.first,
        "seen": [round(each / side, 5) for each, side in zip(seen, (width, height, width, height), strict=True)],
    }  # fmt: skip


@runtime_checkable
class HasPage(Protocol):
    """What puts its own page together, as the answers of `regard.display` do."""

    def page(self, choice: Any = None) -> Page:
        """Put the page together."""


def page_data_with_pictures(value: Any) -> Any:
    """Copy what a browser is given, with `regard.text.quoting.text_with_control_pictures` for its strings."""
    if isinstance(value, str):
        return text_with_control_pictures(value)
    if isinstance(value, dict):
        return {name: page_data_with_pictures(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [page_data_with_pictures(each) for each in value]
    return value


def model_name(statuses: Sequence[Status]) -> str | None:
    """Name the models of all passes; None for none."""
    return " and ".join(dict.fromkeys(status.model for status in statuses)) or None


def status_lines(statuses: Sequence[Status], page: Page) -> list[str]:
    """Write how the traces were computed and how exact the page is."""
    lines = []
    for model in dict.fromkeys(status.model for status in statuses):
        own = [status for status in statuses if status.model == model]
        kernels = ", ".join(dict.fromkeys(kernel for status in own for kernel in status.kernels))
        by = f", attention by {kernels}" if kernels else ""
        lines.append(f"Computed with {model} ({own[0].dtype}, {own[0].device}){by}.")
        lines.append(exactness(own))
    if page.calls:
        kept = "int16 with a scale per vector" if page.encoding == "int16" else "float32"
        lines.append(
            f"This page computes weights from queries and keys stored as {kept}. They differ from the trace by "
            f"at most {page.largest_difference():.1e}."
        )
    for what, numbers in (("layers", page.layers), ("heads", page.heads)):
        if numbers is not None:
            renumbered = ", renumbered from 0" if what == "heads" else ""
            lines.append(f"This page has only {what} {', '.join(map(str, numbers))}{renumbered}.")
    for name, parts in (("Unknown to", "unknown"), ("Dropped by", "dropped")):
        found = [part for status in statuses for part in getattr(status, parts)]
        if found:
            said = ", ".join(quoted(visible(part)) for part in found[:6])
            lines.append(f"{name} the tokenizer: {said}.")
    return lines + note_sentences(statuses)
