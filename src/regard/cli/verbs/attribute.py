"""`regard attribute`: what made an outcome (a next token, or how near two words are), by writers, tokens or heads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import clock, options
from regard.cli.attributing import METHODS, OutcomeAsked
from regard.cli.early_checks import EarlyChecks, no_language_head
from regard.cli.selection import Selection
from regard.cli.source import Source, traced
from regard.cli.store_outputs import HtmlFile, StoreOutputs

if TYPE_CHECKING:
    from regard.explain.frames import Row
    from regard.web.page import Page

To = Annotated[str | None, typer.Option(metavar="TOKEN", help="Of this next token: its logit; needed without --word.")]
Against = Annotated[str | None, typer.Option(metavar="TOKEN", help="With --to: its logit less that of this one.")]
At = Annotated[
    str | None, typer.Option(metavar="WORD", help="With --to: after this word, or token's number, not the last.")
]
Word = Annotated[str | None, typer.Option(help="Of this word: its cosine to another one, --like.")]
Like = Annotated[
    str | None, typer.Option(metavar="WORD", help="With --word: the word of the text it is compared with.")
]
Method = Annotated[str, typer.Option(metavar="M", help=f"One of {', '.join(METHODS)}.")]
By = Annotated[
    str | None, typer.Option(metavar="token|word|head", help="What has a number; heads: of gradient-x-input.")
]
Steps = Annotated[int | None, options.number("N", "Of integrated gradients: points on the way from the baseline.")]
CsvFile = Annotated[Path | None, options.file("--csv", "Write the parts as a table: .csv, safe in spreadsheets.")]


def attribute(
    texts: options.Texts = None,
    targets: options.Targets = None,
    to: To = None,
    against: Against = None,
    at: At = None,
    word: Word = None,
    like: Like = None,
    method: Method = "direct",
    by: By = None,
    steps: Steps = None,
    model: options.ModelName = None,
    top: options.Top = 10,
    figure: options.FigureFile = None,
    html: HtmlFile = None,
    csv: CsvFile = None,
    json_file: options.JsonFile = None,
) -> None:
    """Split an outcome into what made it: what was written directly, or what tokens or heads brought by gradients."""
    given = Source(texts or [], targets or [], model)
    given.check("attribute")
    asked = OutcomeAsked(to, against, at, word, like, method, by, steps)
    asked.check(len(given.texts), targets=bool(targets))
    chosen = Selection(top=top, word=word)
    chosen.check()
    outputs = StoreOutputs(csv, None, json_file, figure, html)
    outputs.check()
    early = EarlyChecks.of(given)
    early.check(chosen)
    early.check_word(like)
    if at is not None and not at.isdecimal():  # else it may be a token's number
        early.check_word(at)
    if to is not None and model is None:
        raise no_language_head(early.model.name)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.attributing import attributed
    from regard.cli.console import consoles, finish
    from regard.explain.causes.attribution import Attribution
    from regard.explain.causes.gradients import TokenAttribution
    from regard.explain.causes.patch_sweep import PatchSweep
    from regard.explain.findings.attribution import attribution_findings
    from regard.views.json import attribution_data
    from regard.views.terminal.attribution import show_attribution
    from regard.views.terminal.layout import put
    from regard.views.terminal.patch_sweep import show_patches
    from regard.views.terminal.unknown_tokens import of_traces, unknown_first
    from regard.web.answers import page_of_answer

    console, errors = consoles(json_file)
    unit = asked.unit
    notes: list[str] = []
    with errors.status("loading the model, tracing and attributing …"):
        done = traced(given)
        found = attributed(asked, done)
        statuses = [side.status for trace in done.traces for side in trace.sides[-1:]]

        def draw(file: Path) -> None:
            from regard.views.figures.attribution import draw_attribution  # matplotlib, for those who asked for it
            from regard.views.figures.patch_sweep import draw_patches

            notes.extend(
                draw_patches(found, file) if isinstance(found, PatchSweep) else draw_attribution(found, file, unit)
            )

        def rows() -> "list[Row]":
            if isinstance(found, Attribution):
                return [{"part": name, "adds": added} for name, added in found.by("token", words=unit == "word")]
            if isinstance(found, TokenAttribution) and unit == "word":
                return [{"word": name, "score": score} for name, score in found.words()]
            return found.rows()

        def page() -> "Page":
            made = page_of_answer(found)
            if not isinstance(found, PatchSweep):
                made.findings = attribution_findings(found, unit)  # of words, where words were asked for
            return made

        data = lambda: attribution_data(found, unit, method, done.texts, statuses)  # noqa: E731
        outputs.write(rows, data, draw, page)
    if any(done.generated):
        written = "; ".join(f"{n}: {target}" for n, (_, target) in enumerate(done.texts, 1))
        console.print(f"the model wrote the target itself: {written}\n", style="dim", markup=False)
    put(unknown_first(of_traces(done.traces)), console)
    if isinstance(found, PatchSweep):
        show_patches(found, console, clock.seconds())
    else:
        show_attribution(found, unit, statuses, top, console, clock.seconds())
    finish(console, errors, outputs.files, notes)
