"""Define `Seen`, the result of `regard see` for a word or whole texts, and `see`, which computes it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from regard.display.answer import MAX_TITLE, Read, TracesAnswer
from regard.display.panels import Panel
from regard.errors import RegardError
from regard.explain.logits import names_of
from regard.explain.texts.occurrences import unfold_texts_to_windows
from regard.explain.texts.summary import Summary, attended_by_every_token, layer_looked_at, summarise
from regard.explain.weights.alignment import Alignment, why_these_layers
from regard.explain.weights.attended import Attended
from regard.explain.wording import capital
from regard.generation.generator import Generated
from regard.models.control import trace_control, trace_word
from regard.models.load import load
from regard.models.model import Model
from regard.models.source import TracedTexts
from regard.questions.generate.answer import generated, least_likely
from regard.questions.generate.writing import written_tokens
from regard.questions.movement import Data, movement_panels, notes_on_movement
from regard.questions.see import panels, sentences
from regard.shown import Row
from regard.text.neutral_sentences import SENTENCES
from regard.text.quoting import quoted, some_of
from regard.text.tokens import check_texts, shortened
from regard.trace.status import merge_statuses
from regard.trace.trace import ShownTrace, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from regard.questions.see.picture.whole import Shape
    from regard.web.assemble import Choice
    from regard.web.page import Page

MAX_NAMED_PARTS = 6  # unknown or dropped pieces of a text that are named


@dataclass(frozen=True, eq=False, repr=False)
class Seen(TracesAnswer):
    """The result of `see`: the summary in plain numbers, and the traces or their windows.

    layer, head: the requested layer and head, which the plot and the opened page show. read: the whole traces of texts
    that were read in windows, for the page. shape: the plot's shape, "slide" or "column".
    """

    format = "regard see"
    panels = panels.summary_panels

    summary: Summary
    layer: int | None = None
    head: int | None = None
    read: Sequence[Any] = field(default=(), kw_only=True)
    shape: "Shape" = field(default="slide", kw_only=True)

    def title(self) -> str:
        """Return a title that names the word and the texts."""
        title = shortened(self.summary.texts[0], MAX_TITLE) if self.summary.texts else ""
        if len(self.summary.texts) > 1:
            title += f" (and {len(self.summary.texts) - 1} more)"
        return title if self.summary.word is None else f"{quoted(self.summary.word)} in {title}"

    def findings(self) -> list[str]:
        """Return at most three sentences about the followed word or, without one, the most distinctive links."""
        return sentences.findings(self.summary)

    def exactness(self) -> list[str]:
        """Return the reason for an alignment's layers, and notes on text that the tokenizer doesn't know."""
        notes: list[str] = []
        if self.summary.target is not None and self.layer is None:
            alignment = self.summary.target.alignments[0]
            notes.append(f"{capital(why_these_layers(alignment, len(self.summary.texts)))}.")
        words = dict.fromkeys(reference.word for reference in self.summary.references)
        missed = [(f"doesn't know all of --compare {quoted(word)}", status.unknown)
                  for word, status in zip(words, self.summary.reference_statuses, strict=True)]  # fmt: skip
        missed += [(f"drops parts of text {label}", status.dropped)
                   for label, status in zip(self.summary.labels, self.about.statuses, strict=True)]  # fmt: skip
        for message, parts in missed:
            if parts:
                notes.append(f"The tokenizer {message}: {some_of([*map(quoted, parts)], MAX_NAMED_PARTS)}.")
        return notes

    def rows(self) -> list[Row]:
        """Return a row per layer and attended token of each occurrence or, without a word, per top link."""
        summary, target = self.summary, self.summary.target
        occurrences = summary.occurrences or (target.summary.occurrences if target is not None else [])
        if occurrences:
            turns = {"token": "turn"}
            rows = [(row, occurrence.text) for occurrence in occurrences for row in occurrence.rows()]
        else:
            turns = {"query": "query_turn", "key": "key_turn"}
            rows = [({"text": label, **asdict(link)}, n)
                    for n, (label, text) in enumerate(zip(summary.labels, summary.highlights, strict=False))
                    for link in text.links]  # fmt: skip
        if any(token.turn for tokens in summary.tokens for token in tokens):  # in a chat, name each token's message
            for row, n in rows:
                numbers = {turn: row[number] for number, turn in turns.items()}
                row |= {t: summary.tokens[n][at].turn if isinstance(at, int) else None for t, at in numbers.items()}
        return [row for row, _ in rows]

    def attended(self, text: int, side: str) -> list[list[Attended]]:
        """Return the tokens that each token of a text or target attends to, per layer. This is slow for long texts."""
        target = self.summary.target if side == "target" else None
        summary, trace = target.summary if target else self.summary, self.traces[text].sides[target is not None]
        return attended_by_every_token(trace, self.head, summary.top, {sink.token for sink in summary.sinks[text]})

    def data(self) -> dict[str, object]:
        """Return the summary as JSON data and, without a followed word, the attention of every token."""
        data = asdict(self.summary)
        for side, of in (("text", data), ("target", (data["target"] or {}).get("summary"))):
            if of:
                texts = range(len(of["texts"]) if self.summary.word is None else 0)
                of["overview"] = [[[asdict(row) for row in rows] for rows in self.attended(n, side)] for n in texts]
        return data

    def opening(self) -> dict[str, str | int | None]:
        """Return the layer, head and word at which the page opens: the requested head, or the head named first."""
        summary = self.summary
        if self.layer is not None or self.head is not None:
            return {"layer": self.layer, "head": self.head, "word": summary.word}
        if (link := sentences.first_link(summary)) is not None:
            return {"layer": link.layer, "head": link.head, "word": summary.word}
        if (row := layer_looked_at(summary)) is not None:
            return {"layer": summary.occurrences[0].attends[row].layer, "word": summary.word}
        if summary.highlights and summary.highlights[0].links:
            first = summary.highlights[0].links[0]
            return {"layer": first.layer, "head": first.head, "token": first.query}
        return {"word": summary.word}

    def alignments(self) -> Sequence[Alignment]:
        """Return the alignments that the sentences are about."""
        return [] if self.summary.target is None else self.summary.target.alignments

    def tabs(self) -> list[Panel | Data]:
        """Return the page's tabs: the word's movement through the layers, and the least likely generated tokens."""
        generated = [(text.trace.sides[-1], text.start) for text in self.read if isinstance(text, Generated)]
        written = [least_likely(written_tokens(side, start, names_of(side))) for side, start in generated]
        return [*movement_panels(self.summary, self.names), *written]

    def overview(self, page: "Page") -> Data | None:
        """Return the data of the page's first view: the generated text, or the texts with the named links."""
        if self.read and all(isinstance(text, Generated) and isinstance(text.trace, Trace) for text in self.read):
            written = [generated(text).plain for text in self.read]
            return page.writing_stage(written, [text.trace for text in self.read])
        return page.overview_of(self.traces, self.summary, chosen=self.layer is not None or self.head is not None)

    def page(self, choice: "Choice | None" = None) -> "Page":
        """Build the page of the texts and their attention, with notes on movement that can't be shown."""
        page = super(Seen, replace(self, traces=self.read or self.traces)).page(choice)
        page.findings = [*page.findings, *notes_on_movement(self.summary)]
        overview: Any = page.overview or {}
        if self.summary.occurrences and overview.get("tokens"):
            page.opening["token"] = overview["tokens"][0]
        return page

    def plot(
        self, *names: str, layer: int | None = None, head: int | None = None, shape: "Shape | None" = None
    ) -> "Figure":
        """Draw the plot of `regard see --figure`, or the named panels, as a Matplotlib figure.

        layer, head: the layer and head to show. shape: a "slide" (16:9), or a "column" of a paper, 85 mm wide.
        """
        if layer is not None or head is not None:
            self = replace(self, layer=layer, head=head)
        return super(Seen, replace(self, shape=shape or self.shape)).plot(*names)

    def shown(self, *arguments: Any, **options: Any) -> "list[RenderableType]":
        """Return the output for a terminal. In a notebook, an SVG of the texts with arcs replaces the texts."""
        parts = super().shown(*arguments, **options)
        texts: list[Any] = [part for part in parts[:-1] if "_repr_html_" in getattr(part, "__dict__", ())]
        in_html = [part._repr_html_ for part in texts]

        def stage_or_texts() -> str:
            from regard.questions.see.picture.whole import small_stage

            stage = small_stage(self.summary, self.traces, self.layer, self.head)
            return stage or "".join(html() for html in in_html)

        for n, part in enumerate(texts):
            part._repr_html_ = str if n else stage_or_texts
        return parts

    def painted(self) -> "tuple[Figure, list[str]]":
        """Draw the plot, and return it with notes on occurrences, texts and predictions that aren't drawn."""
        from regard.questions.see.picture.whole import paint_seen

        return paint_seen(self.summary, self.traces, self.layer, self.head, self.shape)


def seen(
    traces: Sequence[Any],
    word: str | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
    kind: type[Seen] = Seen,
    **options: Any,
) -> Seen:
    """Summarise traces of one kind as a `Seen`. Texts that were read in windows are split into windows.

    kind: the class of the result. word, layer, head, options: as in `regard.explain.texts.summary.summarise`.
    """
    windowed = bool(traces) and all(trace.windowed for trace in traces)
    unfolded = unfold_texts_to_windows(traces, word) if windowed else None
    texts = traces if unfolded is None else unfolded.traces
    summary = summarise(texts, word, layer=layer, head=head, unfolded=unfolded, **options)
    statuses = summary.statuses
    if summary.target is not None:
        statuses = [*map(merge_statuses, statuses, summary.target.summary.statuses)]
    # unknown text is reported for whole texts, not for windows
    about = replace(Read.of(*texts), statuses=tuple(statuses), sides=Read.of(*traces).sides)
    return kind(summary, layer, head, traces=texts, read=traces if windowed else (), about=about)


def seen_next_to_words(
    reading: TracedTexts, word: str | None, references: Sequence[str], neutral: Sequence[str], *, lens: bool,
    **options: Any,
) -> Seen:  # fmt: skip
    """Summarise texts that a command read. references, neutral: words and sentences to trace and to compare with.

    lens: whether to compute the logit lens of each layer. options: as in `seen`.
    """
    model, control = reading.model, None
    compared = [trace_word(model, reference, "--compare") for reference in references]
    if word is not None and compared:
        control = trace_control(model, reading.traces, word, neutral)
    return seen(
        reading.traces, word, references=compared, control=control, names=reading.names, generated=reading.generated,
        lens_of=model if lens else None, **options,
    )  # fmt: skip


NEEDED = {
    "references": "traces of the words: model.trace(['river', 'money'])",
    "control": "traces of neutral sentences: model.trace(regard.neutral_sentences('bank'))",
}


def see(
    texts: str | Sequence[str] | ShownTrace | Sequence[ShownTrace],
    word: str | None = None,
    *,
    references: str | Sequence[str] | Trace | Sequence[Trace] = (),
    control: Sequence[str] | Sequence[Trace] | None = None,
    target: str | Sequence[str] | None = None,
    window: int | None = None,
    stride: int | None = None,
    model: Model | str | None = None,
    layer: int | None = None,
    head: int | None = None,
    top: int = 5,
) -> Seen:
    """Show what attention does to a word in texts or traces, or, without a word, to all tokens, like `regard see`.

    Args:
        texts: one or several texts, or traces of one kind. For a text that was read in windows, each window with the
            word is shown as a separate text.
        word: a word that occurs in every text.
        references: words to compare it with, each read as a separate text. With traces, pass traces of these words:
            `model.trace(["money", "river"])`.
        control: neutral sentences with {} for the word, to separate the effect of your texts from that of any sentence.
            Default: the package's sentences. With traces, pass traces of such sentences:
            `model.trace(regard.neutral_sentences("bank"))`. The default is then none, and movement isn't reported.
        target: for an encoder-decoder, the decoder's text, or one per text (`model.generate` writes one).
        window, stride: read each text in overlapping windows, as in `Model.trace`.
        model: a model from `regard.load`, or its first argument. Default: the default model.
        layer, head: show this layer or head as well. top: the number of tokens to list.

    Returns a `Seen`, which displays itself. It has the numbers (`.summary`), the sentences (`.findings()`), the traces
    (`.traces`) and a plot (`.plot()`).

    Raises:
        RegardError: as in `regard.load` and `Model.trace`, or the word isn't in the texts, a layer or head doesn't
            exist, or a trace comes with target, window, stride or model.
    """
    listed = [texts] if isinstance(texts, str | ShownTrace) else texts
    if isinstance(listed, Sequence) and listed and all(isinstance(trace, ShownTrace) for trace in listed):
        for name, value in (("target", target), ("window", window), ("stride", stride), ("model", model)):
            if value is not None:
                raise RegardError(f"{name}: it controls how texts are traced: leave it out for a trace")
        traces: Any = listed
        references = listed_traces("references", references)
        control = None if control is None else listed_traces("control", control)
    else:
        plain, words = list(check_texts(texts)), list(check_texts(references, "references"))
        targets = None if target is None else list(check_texts(target, "target"))
        opened: Any = model if isinstance(model, Model) else load(model)
        traces = opened.trace(plain, target=targets, window=window, stride=stride)
        compared = opened.trace(words, target=words if opened.pairs else None) if words else []
        references = [trace.sides[0] for trace in compared]
        neutral: Any = SENTENCES if control is None else control
        control = trace_control(opened, traces, word, neutral) if words and word is not None else None
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise RegardError(f"top: got {top!r}, expected a number of 1 or more")
    return seen(traces, word, references=references, control=control, layer=layer, head=head, top=top)


def listed_traces(name: str, traces: object) -> "list[Trace]":
    """Return reference or control traces as a list. Raises RegardError for anything else."""
    listed: list[Any] = list(traces) if isinstance(traces, Iterable) and not isinstance(traces, Trace) else [traces]
    for wrong in (trace for trace in listed if not isinstance(trace, Trace)):
        raise RegardError(f"{name}: got {type(wrong).__name__}, expected {NEEDED[name]}")
    return listed
