"""`regard why`: which tokens and heads moved a word, checked without each; or why a head looks there (--edge)."""

from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import clock, options
from regard.cli.early_checks import EarlyChecks
from regard.cli.edge_score import EdgeAsked, show_edge
from regard.cli.estimate import Estimate
from regard.cli.file_options import writes
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.page_file import PageFile
from regard.cli.selection import Selection
from regard.cli.source import Source, traced, traced_again
from regard.errors import RegardError
from regard.explain.causes.token_rankings import TOKENS_BY

if TYPE_CHECKING:
    from regard.explain.causes.why import Why
    from regard.web.page import Page

By = Annotated[
    str,
    typer.Option(
        "--by", metavar="BY", help="Rank tokens by removal, edges (the word's alone), contribution or weight."
    ),
]
Ranked = Annotated[int, options.number("K", "How many tokens and heads to show of each ranking.")]


@writes("figure", "json", "html of traces", "save parts")
def why(
    texts: options.Texts = None,
    targets: options.Targets = None,
    word: options.NeededOrEdge = None,
    edge: options.Edge = None,
    layer: options.EdgeLayer = None,
    head: options.EdgeHead = None,
    part: options.EdgePart = None,
    model: options.ModelName = None,
    by: By = "removal",
    top: Ranked = 10,
    everything: options.All = False,
    open_file: options.OpenAgain = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Rank the tokens and heads behind a word by what is lost without each of them; or split one score."""
    given = Source(texts or [], targets or [], model, file=open_file)
    given.check("why")
    if by not in TOKENS_BY:
        raise RegardError(f"--by: given {by!r}, needs one of {', '.join(TOKENS_BY)}")
    asked = EdgeAsked(edge, layer, head, part)
    if edge is not None:
        if by != TOKENS_BY[0]:
            raise RegardError("--by goes with --word: it says what the tokens behind a word are ranked by")
        show_edge(given, asked, word, top, everything, outputs)
        return
    asked.check_absent(outputs.figure)
    chosen = Selection(top=top, word=word)
    word = chosen.needed_word()
    chosen.check()
    outputs.check()
    early = EarlyChecks.of(given, again=open_file is not None)
    early.check(chosen, outputs.save, outputs.html)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.explain.causes.why import occurrences
    from regard.explain.texts.occurrences import lettered
    from regard.views.json import why_data
    from regard.views.terminal.layout import put
    from regard.views.terminal.unknown_tokens import of_traces, unknown_first
    from regard.views.terminal.why import show_why, show_why_shortly

    console, errors = consoles(outputs.json)
    found: list[tuple[str, Why]] = []
    with errors.status("loading the model, tracing and ablating …"):
        done = traced(given, errors) if open_file is None else traced_again(given)
        estimate = Estimate(errors, "measuring without each")
        of_texts = [occurrences(trace, word) for trace in done.traces]
        every = sum(map(len, of_texts))

        def progress(count: int, runs: int) -> None:
            estimate.at((len(found) + count / runs) / every)

        for number, (trace, words) in enumerate(zip(done.traces, of_texts, strict=True), 1):
            for nth, (of, each) in enumerate(words):
                label = lettered(str(number), nth, len(words))
                found.append((label, done.model.why(trace, each, part=of, tokens_by=by, progress=progress)))
        statuses = [trace.status for trace in done.traces]

        def page(html: PageFile) -> "Page":
            from regard.explain.findings.why import why_findings
            from regard.web.assemble import Opening, page_of
            from regard.web.panels import why_panels

            sentences, opening = why_findings(found), Opening("tokens", word=word)
            made = page_of(done.traces, html.choice(), opening, findings=sentences)
            made.panels += why_panels(found)
            return made

        data = lambda: why_data(found, done.texts, done.generated, statuses)  # noqa: E731
        outputs.write(traces=done.traces, data=data, page=page)
    if any(done.generated):
        written = "; ".join(f"{n}: {target}" for n, (_, target) in enumerate(done.texts, 1))
        console.print(f"the model wrote the target itself: {written}\n", style="dim", markup=False)
    put(unknown_first(of_traces(done.traces)), console)
    (show_why if everything else show_why_shortly)(found, statuses, top, console, clock.seconds())
    finish(console, errors, outputs.files)
