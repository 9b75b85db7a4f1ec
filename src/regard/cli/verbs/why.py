"""`regard why`: which tokens and heads moved a word, checked without each; or why a head looks there (--edge)."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from regard.cli import options
from regard.cli.options import needed_word, number, option
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import Source, traced, traced_again
from regard.cli.telling import tell, waiting
from regard.errors import RegardError
from regard.explain.causes.token_rankings import TOKENS_BY
from regard.questions.score.asked import ScoreAsked

if TYPE_CHECKING:
    from regard.questions.why.answer import Why

STRONGEST = "that of the largest weight (with --edge only)"


@writes("figure", "json", "html of traces", "csv", "save")
def why(
    texts: options.Texts = None,
    targets: options.Targets = None,
    seconds: options.Seconds = None,
    word: Annotated[str | None, option("--word", "required without --edge and --to")] = None,
    to: Annotated[str | None, option("--to", "none")] = None,
    edge: Annotated[str | None, option("--edge")] = None,
    layer: Annotated[int | None, number("--layer", STRONGEST)] = None,
    head: Annotated[int | None, number("--head", STRONGEST)] = None,
    part: Annotated[str | None, option("--part")] = None,
    model: options.ModelName = None,
    method: Annotated[str, option("--method")] = "removal",
    top: Annotated[int | None, number("--top", "10 (5 for two words)", least=1)] = None,
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
    if edge is not None:
        if to is not None:
            raise RegardError("--edge and --to: give one of them, a score to split or a label to explain")
        if method != TOKENS_BY[0]:
            raise RegardError("--method goes with --word: it says what the tokens behind a word are ranked by")
        if word is not None:
            raise RegardError("--edge and --word: give one of them, a score to split or a word to explain")
        query, key = words_of_edge(edge)
        question = ScoreAsked(query=query, key=key, layer=layer, head=head, part=part)
        show_edge(given, question, 10 if top is None else top, everything, outputs)
        return
    for name, value in (("--layer", layer), ("--head", head), ("--part", part)):
        if value is not None:
            raise RegardError(f"{name} goes with --edge WORD:WORD: it chooses the score")
    if to is None or word is not None:
        word = needed_word(word, ", or --to with a label of a classifier")

    from regard.display.answer import Read
    from regard.explain.texts.occurrences import occurrence_label_in_text
    from regard.questions.why.answer import WhyOfTexts
    from regard.questions.why.causes import occurrences_to_ask_why

    found: list[tuple[str, Why]] = []
    with waiting(outputs, "Loading the model, tracing and ablating …") as status:
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
    tell(answer, outputs, rows, done.written_first(), everything=everything, traces=done.traces)


def words_of_edge(edge: str) -> tuple[str, str]:
    """The two words of --edge. Raises RegardError where they are not two."""
    query, colon, key = edge.rpartition(":") if edge.count(":") == 1 else ("", "", "")
    if not colon or not query.strip() or not key.strip():
        raise RegardError(f"--edge: given {edge!r}, needs two words and a colon: --edge bank:river")
    return query.strip(), key.strip()


def show_edge(given: Source, question: ScoreAsked, top: int, everything: bool, outputs: Outputs) -> None:
    """Trace the text, split the score, and show it."""
    if given.file is None:  # how many traces a file has is known once it is read
        question.check(len(given.texts), called=_called)
    with waiting(outputs, "Loading the model and tracing …"):
        done = traced(given) if given.file is None else traced_again(given)
        question.check(len(done.traces), called=_called)
        found = replace(question.answer(done.model, done.traces), traces=done.traces)
    tell(found, outputs, top, everything=everything, traces=done.traces)


def _called(field: str) -> str:
    """What the command calls a field: query and key stand in --edge."""
    return "--edge" if field in ("query", "key") else f"--{field}"
