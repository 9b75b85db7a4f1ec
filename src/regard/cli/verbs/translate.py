"""`regard translate`: an encoder-decoder's translation of texts, and what it looked at."""

from typing import TYPE_CHECKING, Annotated, Any

from regard.cli import clock, options
from regard.cli.early_checks import EarlyChecks, no_translation
from regard.cli.file_options import writes
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.page_file import PageFile
from regard.cli.selection import Selection
from regard.cli.source import Source, check_texts, traced
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.web.page import Page

BothIn = Annotated[
    int | None, options.number("N", "Show the alignment in this layer; by default in the two that agree most.")
]


@writes("figure", "json", "html of traces", "save")
def translate(
    texts: options.Texts = None,
    model: options.NeededModel = None,
    layer: BothIn = None,
    head: options.OneOfHeads = None,
    top: options.Top = 5,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Translate texts with an encoder-decoder (one's own run, too) and show the alignment of its cross-attention."""
    if not texts:
        raise RegardError("no text given: regard translate TEXT [TEXT ...] --model M")
    check_texts("text", texts)
    if model is None:
        raise RegardError("--model is needed: the default model is no encoder-decoder")
    chosen = Selection(layer, head, top)
    chosen.check()
    outputs.check()
    given = Source(texts=texts, model=model)
    early = EarlyChecks.of(given)
    early.check_kind(False, no_translation)
    early.check(chosen, page=outputs.html)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.explain.texts.summary import summarise
    from regard.questions.see.answer import Seen
    from regard.views.json import translation_data
    from regard.views.terminal.alignment import alignment, show_translation
    from regard.views.terminal.generation import translated
    from regard.views.terminal.layout import put, status
    from regard.views.terminal.unknown_tokens import of_traces, unknown_first

    console, errors = consoles(outputs.json)
    with errors.status("loading the model and translating …"):
        found = traced(given)
        if not found.generated:
            raise no_translation(found.model.name)
        seen = summarise(found.traces, layer=layer, head=head, top=top, names=found.names, generated=found.generated)

    drawing = Seen(seen, chosen.layer, chosen.head, traces=found.traces).draw

    def page(html: PageFile) -> "Page":
        from regard.explain.findings.alignment import alignment_findings
        from regard.web.assemble import Opening, page_of

        opening = Opening("alignment", layer, head)
        return page_of(found.traces, html.choice(), opening, findings=alignment_findings(seen))

    traces = found.traces if len(found.traces) > 1 else found.traces[0]
    notes = outputs.write(traces=traces, draw=drawing, data=lambda: translation_data(seen), page=page)
    assert seen.target is not None
    put(unknown_first(of_traces(found.traces)), console)
    if not everything:
        show_translation(seen, found.texts, console, clock.seconds())
        finish(console, errors, outputs.files, notes)
        return
    parts: list[Any] = [translated(text or "", target or "") for text, target in found.texts]
    parts += [alignment(each, seen, console.width) for each in seen.target.alignments]
    put([*parts, status([trace.status for trace in found.traces], took=clock.seconds())], console)
    finish(console, errors, outputs.files, notes)
