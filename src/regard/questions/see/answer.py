"""Hold what is seen of a followed word, or of whole texts: the summary, the traces that it is of, and how they read."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from regard.display.answer import Read, TracesAnswer
from regard.display.panels import Panel
from regard.errors import RegardError
from regard.explain.frames import Row
from regard.explain.logits import names_of
from regard.explain.texts.summary import Summary, attended_by_every_token, summarise
from regard.explain.weights.attended import Attended
from regard.explain.weights.head_scores import SCORED
from regard.generation.generator import Generated
from regard.questions.generate.answer import Generation, generation, least_likely, written_tokens
from regard.questions.movement.panels import Data, movement_panels, not_shown
from regard.questions.movement.sentences import missing
from regard.questions.see import panels, sentences
from regard.questions.see.panels import layer_looked_at
from regard.text.quoting import quoted, some_of
from regard.text.tokens import Token, shortened
from regard.trace.display import LONG as LONG_TEXT
from regard.trace.status import merge_statuses
from regard.trace.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from regard.questions.see.picture.whole import Shape
    from regard.web.assemble import Choice
    from regard.web.page import Page


LONG = 60  # characters of a text in a title
CLOSE = 1e-3  # parts of embeddings that sum up so near are all
FEW = 6  # parts that are named


@dataclass(frozen=True, eq=False, repr=False)
class Seen(TracesAnswer):
    """What `see` found: the summary as plain numbers, and the traces that it is of, or their windows.

    layer, head: the single heads that were asked for, which the picture shows and the page opens at. read: of texts
    that were read in windows the whole traces, which the page has. shape: of the picture, "slide" or "column".
    """

    format: ClassVar[str] = "regard see"
    panels = panels.of_summary

    summary: Summary
    layer: int | None = None
    head: int | None = None
    read: Sequence[Any] = field(default=(), kw_only=True)
    shape: "Shape" = field(default="slide", kw_only=True)

    def title(self) -> str:
        """Of which word and texts."""
        text = shortened(self.summary.texts[0], LONG) if self.summary.texts else ""
        more = len(self.summary.texts) - 1
        of = text + (f" (and {more} more)" if more > 0 else "")
        return of if self.summary.word is None else f"{quoted(self.summary.word)} in {of}"

    def findings(self) -> list[str]:
        """Return the sentences about the word, or about what is most worth a look."""
        return sentences.findings(self.summary)

    def exactness(self) -> list[str]:
        """Report what the tokenizer did not read, and embeddings that are not explained."""
        statuses = self.about.statuses
        sums = [each.embedding_difference for each in statuses if each.embedding_difference is not None]
        far = max(sums, default=0.0)
        said = [f"The known parts of the embeddings differ from their sum by {far:.1e}."] if far >= CLOSE else []
        words = dict.fromkeys(reference.word for reference in self.summary.references)
        for word, status in zip(words, self.summary.reference_statuses, strict=True):
            if status.unknown:
                named = some_of([*map(quoted, status.unknown)], FEW)
                said.append(f"The tokenizer doesn't know all of --compare {quoted(word)}: {named}.")
        for label, status in zip(self.summary.labels, statuses, strict=True):
            if status.dropped:
                named = some_of([*map(quoted, status.dropped)], FEW)
                said.append(f"The tokenizer drops parts of text {label}: {named}.")
        return said

    def rows(self) -> list[Row]:
        """Where each occurrence looks, a row a layer and token; without a word the sharpest links, a row each."""
        summary, target = self.summary, self.summary.target
        chat = any(token.turn for tokens in summary.tokens for token in tokens)
        seen = summary.occurrences or (target.summary.occurrences if target is not None else [])
        if seen:
            found = [(row, summary.tokens[each.text] if chat else ()) for each in seen for row in each.rows()]
            return [_with_turns(row, tokens, {"token": "turn"}) for row, tokens in found]
        links = [
            ({"text": label, **asdict(link)}, summary.tokens[n] if chat else ())
            for n, (label, each) in enumerate(zip(summary.labels, summary.highlights, strict=False))
            for link in each.links
        ]
        return [_with_turns(row, tokens, {"query": "query_turn", "key": "key_turn"}) for row, tokens in links]

    def attended(self, text: int, side: str) -> list[list[Attended]]:
        """Find where each token of a text, or of its target, attends in each layer. It takes long for a long text."""
        target = self.summary.target if side == "target" else None
        summary, trace = target.summary if target else self.summary, self.traces[text].sides[target is not None]
        apart = {sink.token for sink in summary.sinks[text]}
        return attended_by_every_token(trace, self.head, summary.top, apart)

    def data(self) -> dict[str, object]:
        """The whole summary, and without a word where every token attends."""
        data = asdict(self.summary)
        for side, of in (("text", data), ("target", (data["target"] or {}).get("summary"))):
            if of:
                texts = range(len(of["texts"]) if self.summary.word is None else 0)
                of["overview"] = [[[asdict(row) for row in rows] for rows in self.attended(n, side)] for n in texts]
        return data

    def opening(self) -> dict[str, str | int | None]:
        """Open at the head that was asked for, else at the first that the sentences name."""
        summary = self.summary
        if self.layer is not None or self.head is not None:
            return {"layer": self.layer, "head": self.head, "word": summary.word}
        link = sentences.first_link(summary)
        if link is not None:
            return {"layer": link.layer, "head": link.head, "word": summary.word}
        place = layer_looked_at(summary) if summary.occurrences else None
        if place is not None:
            return {"layer": summary.occurrences[0].attends[place].layer, "word": summary.word}
        whole = len(summary.texts) == 1 or len(summary.highlights) == len(summary.texts)
        links = summary.highlights[0].links if summary.word is None and whole and summary.highlights else []
        if not links:
            return {"word": summary.word}
        return {"layer": links[0].layer, "head": links[0].head, "token": links[0].query}

    def tabs(self) -> list[Panel | Data]:
        """List the word's way through the layers, and what a model wrote: the page shows where tokens look itself."""
        done = [(each.trace.sides[-1], each.start) for each in self.read if isinstance(each, Generated)]
        written = [least_likely(written_tokens(side, start, names_of(side))) for side, start in done]
        return [*movement_panels(self.summary, self.names), *written]

    def overview(self, page: "Page") -> Data | None:
        """Write what the page's first view needs: of short texts what the sentences name, and the followed word."""
        from regard.web.overview import overview_data, writing_stage

        if self.read and all(isinstance(each, Generated) and isinstance(each.trace, Trace) for each in self.read):
            return writing_stage(
                page, [generation(each).plain for each in self.read], [each.trace for each in self.read]
            )
        return overview_data(page, self.traces, self.summary, chosen=self.layer is not None or self.head is not None)

    def page(self, choice: "Choice | None" = None) -> "Page":
        """Put together the page: the texts with their attention, and the word's movement, or why it is not shown."""
        page = super(Seen, replace(self, traces=self.read or self.traces)).page(choice)
        page.findings = [*page.findings, *not_shown(self.summary)]
        return page

    def plot(
        self, *names: str, layer: int | None = None, head: int | None = None, shape: "Shape | None" = None
    ) -> "Figure":
        """Draw what `regard see --figure` draws, or the panels of these names.

        layer, head: show these. shape: a "slide" (16:9), or a "column" of a paper, 85 mm wide.
        """
        if layer is not None or head is not None:
            self = replace(self, layer=layer, head=head)
        return super(Seen, replace(self, shape=shape or self.shape)).plot(*names)

    def shown(self, *how: Any, **options: Any) -> "list[RenderableType]":
        """Return what a terminal shows; in a notebook, the small stage is in the place of the texts."""
        parts = super().shown(*how, **options)
        texts: list[Any] = [part for part in parts[:-1] if "_repr_html_" in getattr(part, "__dict__", ())]
        whole = partial(self._stage, [each._repr_html_ for each in texts])
        for n, part in enumerate(texts):
            part._repr_html_ = str if n else whole
        return parts

    def _stage(self, texts: "Sequence[Callable[[], str]]") -> str:
        """Make the HTML of the small stage; of what has none, that of its texts."""
        from regard.questions.see import stage
        from regard.questions.see.picture.small import small_stage

        lines = [] if self.summary.target else stage.lines(self.summary, self.traces, self.layer, self.head)
        short = lines and max(len(line.trace.tokens) for line in lines) <= stage.LONGEST
        return small_stage(lines) if short else "".join(html() for html in texts)

    def painted(self) -> "tuple[Figure, list[str]]":
        """Draw its picture, and say what it could not show."""
        from regard.questions.see.picture.whole import paint_seen

        return paint_seen(self.summary, self.traces, self.layer, self.head, self.shape)


def _with_turns(row: Row, tokens: Sequence[Token], columns: dict[str, str]) -> Row:
    """A row with the messages that its tokens are in. tokens: of a chat, else none. columns: of numbers and turns."""
    if not tokens:
        return row
    given = {turn: row[number] for number, turn in columns.items()}
    return row | {turn: tokens[n].turn if isinstance(n, int) else None for turn, n in given.items()}


def seen(
    traces: Sequence[Any],
    word: str | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
    kind: type[Seen] = Seen,
    **how: Any,
) -> Seen:
    """Look at traces of one kind; those of texts that were read in windows are unfolded to their windows.

    kind: of the answer. word, layer, head, how: as of `regard.explain.texts.summary.summarise`, with its errors.
    """
    from regard.explain.texts.window_texts import unfold_texts_to_windows

    windowed = bool(traces) and all(each.windowed for each in traces)
    unfolded = unfold_texts_to_windows(traces, word) if windowed else None
    given = traces if unfolded is None else unfolded.traces
    summary = summarise(given, word, layer=layer, head=head, unfolded=unfolded, **how)
    targets: Sequence[str | None] = [None] * len(summary.texts)
    statuses = tuple(summary.statuses)
    if summary.target is not None:
        targets, others = summary.target.summary.texts, summary.target.summary.statuses
        statuses = tuple(merge_statuses(*both) for both in zip(statuses, others, strict=True))
    # unknown tokens are reported for whole texts, not for windows
    about = Read(tuple(zip(summary.texts, targets, strict=True)), statuses, Read.of(*traces).sides)
    return kind(summary, layer, head, traces=given, read=traces if windowed else (), about=about)


def on_a_page(
    traces: Sequence[Any],
    word: str | None,
    references: Sequence[Any] = (),
    control: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
) -> Seen | Generation | list[str]:
    """Look at the traces of a page, of what a model wrote as well, or return what the page says instead."""
    plain: list[Any] = [each.trace if isinstance(each, Generated) else each for each in traces]
    most = LONG_TEXT if word is None else SCORED
    windowed = [each.windowed for each in plain]
    sides = [side for each in plain for side in (each.windows if each.windowed else each.sides)]
    if max(len(side.tokens) for side in sides) > most:
        why = f"a text has more than {most:,} tokens"
    elif any(windowed) and not all(windowed):
        why = "some texts are read in windows and others are not"
    else:
        try:
            if word is None and len(traces) == 1 and plain[0] is not traces[0] and isinstance(plain[0], Trace):
                return replace(generation(traces[0]), names=names)
            return replace(seen(plain, word, references=references, control=control), read=traces, names=names)
        except RegardError:
            if word is not None:
                raise
            why = ""
    return [] if word is None else [missing(word, why)]
