"""`regard see`: what self-attention does to a word, or to every token of some texts."""

from dataclasses import replace
from typing import Annotated

from regard.cli import options
from regard.cli.file_options import writes
from regard.cli.held_against import ControlFile, StaticVectors
from regard.cli.options import number
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.selection import Selection
from regard.cli.source import Source, traced
from regard.errors import RegardError


@writes("figure", "csv", "json", "html of traces", "save parts")
def see(
    texts: options.Texts = None,
    targets: options.Targets = None,
    word: options.FollowedWord = None,
    references: options.References = None,
    control: options.ControlFile = None,
    model: options.ModelName = None,
    layer: Annotated[int | None, number("--layer", "all")] = None,
    head: Annotated[int | None, number("--head", "all")] = None,
    top: options.Top = 5,
    next_token: options.Next = False,
    window: options.Window = None,
    stride: options.Stride = None,
    static: options.StaticFile = None,
    everything: options.All = False,
    open_file: options.OpenFile = None,
    images: options.Images = None,
    remove: options.Remove = None,
    chat: options.Chat = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Show what self-attention does to a word, or to all tokens, of your texts.

    Pass --layer or --head to show single heads. Pass --image to show where a vision model looks.
    """
    chosen = Selection(layer, head, top, word, ",".join(references) if references else None)
    chosen.check(opened=open_file is not None)
    if images:
        from regard.cli.verbs.see_images import see_images

        told = {
            "--target-text": targets, "--compare": references, "--control": control,
            "--logit-lens": next_token or None, "--window": window, "--stride": stride, "--static": static,
            "--open": open_file, "--chat": chat,
        }  # fmt: skip
        see_images(images, texts, told, model, chosen, everything, outputs, remove)
        return
    if remove is not None:
        raise RegardError("--remove: needs --image, whose regions it removes")
    vectors = StaticVectors(static)
    vectors.check(chosen)
    neutral = ControlFile(control)
    neutral.check(chosen)
    given = Source(texts or [], targets or [], model, window, stride, open_file, chat)
    given.check("see")
    outputs.check()
    sentences = neutral.sentences(chosen)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles
    from regard.cli.telling import tell
    from regard.models.control import trace_control, trace_word
    from regard.questions.see.answer import seen

    vectors = vectors if static is None else vectors.read(chosen)
    screens = consoles(outputs.json)
    with screens[1].status("Loading and tracing …"):
        done = traced(given, needs_model=next_token)
        compared = [trace_word(done.model, each, "--compare") for each in chosen.reference_words]
        found = seen(
            done.traces,
            word,
            layer=layer,
            head=head,
            references=compared,
            control=trace_control(done.model, done.traces, word, sentences) if word is not None and compared else None,
            top=top,
            names=done.names,
            lens_of=done.model if next_token else None,
            generated=done.generated,
        )
        if static is not None:
            found = replace(found, summary=vectors.beside(found.summary, found.traces, compared))
    tell(found, outputs, screens, everything=everything, traces=found.traces)
