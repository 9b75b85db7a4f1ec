"""`regard why`: which tokens and heads moved a word, checked without each; or why a head looks there (--edge)."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from regard.cli import options
from regard.cli.options import Selection, number, option
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import Source, traced, traced_again
from regard.cli.telling import tell
from regard.errors import RegardError
from regard.explain.causes.token_rankings import TOKENS_BY
from regard.questions.score.asked import ScoreAsked

if TYPE_CHECKING:
    from regard.questions.why.answer import Why

STRONGEST = "that of the largest weight (with --edge only)"


@writes("figure", "json", "html of traces", "csv", "save parts")
def why(
    texts: options.Texts = None,
    targets: options.Targets = None,
    seconds: options.Seconds = None,
    word: options.NeededOrEdge = None,
    to: options.Label = None,
    edge: options.Edge = None,
    layer: Annotated[int | None, number("--layer", STRONGEST)] = None,
    head: Annotated[int | None, number("--head", STRONGEST)] = None,
    part: Annotated[str | None, option("--part")] = None,
    model: options.ModelName = None,
    method: Annotated[str, option("--method")] = "removal",
    top: Annotated[int | None, number("--top", "10 (5 for two words)")] = None,
    everything: options.All = False,
    open_file: options.OpenFile = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Rank the tokens and heads that affect a word (--word) or a label (--to), or split an attention score (--edge).

    --method ranks tokens by the effect of ablating them (removal), by the effect of ablating the word's attention to
    them (edges), by contribution, or by weight. With --open, the model (--model) reads the texts of the file again.
    """
    given = Source(texts or [], targets or [], model, file=open_file, second=seconds or [])
    given.check("why")
    if method not in TOKENS_BY:
        raise RegardError(f"--method: given {method!r}, needs one of {', '.join(TOKENS_BY)}")
    asked = EdgeAsked(edge, layer, head, part)
    if edge is not None:
        if to is not None:
            raise RegardError("--edge and --to: give one of them, a score to split or a label to explain")
        if method != TOKENS_BY[0]:
            raise RegardError("--method goes with --word: it says what the tokens behind a word are ranked by")
        show_edge(given, asked, word, 10 if top is None else top, everything, outputs)
        return
    asked.check_absent()
    chosen = Selection(top=10 if top is None else top, word=word)
    if to is None:
        word = chosen.needed_word()
    chosen.check()
    outputs.check()

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.telling import consoles
    from regard.display.answer import Read
    from regard.explain.texts.occurrences import occurrence_label_in_text
    from regard.questions.why.answer import WhyOfTexts
    from regard.questions.why.causes import occurrences_to_ask_why

    screens = consoles(outputs.json)
    found: list[tuple[str, Why]] = []
    with screens[1].status("Loading the model, tracing and ablating …") as status:
        done = traced(given) if open_file is None else traced_again(given)
        of_texts: list[list[tuple[Any, Any]]]
        of_texts = [[(None, None)] if word is None else occurrences_to_ask_why(trace, word) for trace in done.traces]
        every = sum(map(len, of_texts))

        def progress(count: int, runs: int) -> None:
            status.update(f"Measuring without each … {(len(found) + count / runs) / every:.0%}")

        for number, (trace, words) in enumerate(zip(done.traces, of_texts, strict=True), 1):
            for nth, (of, each) in enumerate(words):
                label = occurrence_label_in_text(str(number), nth, len(words))
                found.append((label, done.model.why(trace, each, to=to, part=of, tokens_by=method, progress=progress)))
    read = Read(tuple(done.texts), tuple(trace.status for trace in done.traces), Read.of(*done.traces).sides)
    answer = WhyOfTexts(found, done.generated, about=read, traces=done.traces)
    rows = top or (10 if len(found) != 2 else 5)
    tell(answer, outputs, screens, rows, done.written_first(), everything=everything, traces=done.traces)


@dataclass(frozen=True)
class EdgeAsked:
    """What --edge, --layer, --head and --part were given."""

    edge: str | None = None
    layer: int | None = None
    head: int | None = None
    part: str | None = None

    def check_absent(self) -> None:
        """Refuse what goes with --edge alone, where there is none."""
        given = {"--layer": self.layer, "--head": self.head, "--part": self.part}
        used = [option for option, value in given.items() if value is not None]
        if used:
            raise RegardError(f"{used[0]} goes with --edge WORD:WORD: it chooses the score")

    def question(self) -> ScoreAsked:
        """The question, with the two words apart. Raises RegardError where they are not two."""
        assert self.edge is not None
        query, colon, key = self.edge.rpartition(":") if self.edge.count(":") == 1 else ("", "", "")
        if not colon or not query.strip() or not key.strip():
            raise RegardError(f"--edge: given {self.edge!r}, needs two words and a colon: --edge bank:river")
        return ScoreAsked(query=query.strip(), key=key.strip(), layer=self.layer, head=self.head, part=self.part)


def show_edge(given: Source, asked: EdgeAsked, word: str | None, top: int, everything: bool, outputs: Outputs) -> None:
    """Trace the text, split the score, and show it.

    word: the value of --word, which does not go with an edge.
    """
    if word is not None:
        raise RegardError("--edge and --word: give one of them, a score to split or a word to explain")
    question = asked.question()
    if given.file is None:  # how many traces a file has is known once it is read
        question.check(len(given.texts), called=_called)
    chosen = Selection(asked.layer, asked.head, top)
    chosen.check()
    outputs.check()

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.telling import consoles

    screens = consoles(outputs.json)
    with screens[1].status("Loading the model and tracing …"):
        done = traced(given) if given.file is None else traced_again(given)
        question.check(len(done.traces), called=_called)
        found = replace(question.answer(done.model, done.traces), traces=done.traces)
    tell(found, outputs, screens, top, everything=everything, traces=done.traces)


def _called(field: str) -> str:
    """What the command calls a field: query and key stand in --edge."""
    return "--edge" if field in ("query", "key") else f"--{field}"
