"""`regard see`: what self-attention does to a word, or to every token of some texts."""

from typing import TYPE_CHECKING

from regard.cli import clock, options
from regard.cli.control_file import ControlFile, traced_control
from regard.cli.early_checks import EarlyChecks, no_windows
from regard.cli.file_options import writes
from regard.cli.outputs import NOTHING, Outputs, summary_drawing
from regard.cli.page_file import PageFile
from regard.cli.selection import Selection
from regard.cli.source import Source, trace_word, traced
from regard.cli.static_vectors import StaticVectors

if TYPE_CHECKING:
    from regard.web.page import Page


@writes("figure", "json", "html of traces", "save parts")
def see(
    texts: options.Texts = None,
    targets: options.Targets = None,
    word: options.FollowedWord = None,
    references: options.References = None,
    control: options.ControlFile = None,
    model: options.ModelName = None,
    layer: options.Layer = None,
    head: options.Head = None,
    top: options.Top = 5,
    next_token: options.Next = False,
    window: options.Window = None,
    stride: options.Stride = None,
    static: options.StaticFile = None,
    everything: options.All = False,
    open_file: options.OpenFile = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Show what self-attention does to a word in one text or several, on a real model."""
    chosen = Selection(layer, head, top, word, references)
    chosen.check(opened=open_file is not None)
    vectors = StaticVectors(static)
    vectors.check(chosen)
    neutral = ControlFile(control)
    neutral.check(chosen)
    given = Source(texts or [], targets or [], model, window, stride, open_file)
    given.check("see")
    outputs.check()
    vectors.check_file()
    sentences = neutral.sentences(chosen)
    early = EarlyChecks.of(given)
    early.check(chosen, outputs.save, outputs.html)
    if window is not None:
        early.check_kind(True, no_windows)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.explain.texts.summary import summarise
    from regard.explain.texts.window_texts import unfold
    from regard.views.json import summary_data
    from regard.views.terminal.brief import show as show_brief
    from regard.views.terminal.layout import put
    from regard.views.terminal.summary import show
    from regard.views.terminal.unknown_tokens import of_traces, unknown_first

    console, errors = consoles(outputs.json)
    with errors.status("loading and tracing …"):
        found = traced(given, errors, needs_model=next_token)
        unfolded = None if window is None else unfold(found.traces, word)
        traces = found.traces if unfolded is None else unfolded.traces
        compared = [trace_word(found.model, each, "--with") for each in chosen.reference_words]
        seen = summarise(
            traces,
            word,
            references=compared,
            control=traced_control(found.model, traces, chosen, sentences),
            layer=layer,
            head=head,
            top=top,
            names=found.names,
            lens_of=found.model if next_token else None,
            generated=found.generated,
            unfolded=unfolded,
        )
        seen = vectors.beside(seen, traces, compared)
        drawing = summary_drawing(seen, traces, chosen)

        def page(html: PageFile) -> "Page":
            from regard.explain.findings.see import findings
            from regard.web.assemble import Opening, looked_at, page_of
            from regard.web.movement import add_movement

            chosen_here = layer is not None or head is not None
            opening = Opening("tokens", layer, head, word) if chosen_here else looked_at(seen, word)
            made = page_of(found.traces, html.choice(), opening, findings=findings(seen))
            add_movement(made, seen)
            return made

        notes = outputs.write(traces=traces, draw=drawing, data=lambda: summary_data(seen), page=page)
    if window is not None:  # unknown tokens are named of whole texts, not of windows
        put(unknown_first(of_traces(found.traces)), console)
    (show if everything else show_brief)(seen, console, clock.seconds())
    finish(console, errors, outputs.files, notes)
