"""`regard translate`: an encoder-decoder's translation of texts, and what it looked at."""

from typing import Annotated

from regard.cli import options
from regard.cli.options import Selection, number
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import Source, check_text_arguments, traced
from regard.errors import RegardError


@writes("figure", "html of traces", "csv", "json", "save")
def translate(
    texts: options.Texts = None,
    model: options.NeededModel = None,
    layer: Annotated[int | None, number("--layer", "the two layers that agree most")] = None,
    head: options.OneOfHeads = None,
    top: options.Top = 5,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Translate texts with an encoder-decoder and show the alignment in its cross-attention."""
    if not texts:
        raise RegardError("no text given: regard translate TEXT [TEXT ...] --model M")
    check_text_arguments("text", texts)
    if model is None:
        raise RegardError(
            "--model is needed: pass an encoder-decoder, from the Hub (--model Helsinki-NLP/opus-mt-en-fr) "
            "or your own (regard train --pairs FILE --out runs/translator)"
        )
    chosen = Selection(layer, head, top)
    chosen.check()
    outputs.check()
    given = Source(texts=texts, model=model)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.telling import consoles, tell
    from regard.questions.alignment import Translation
    from regard.questions.see.answer import seen

    screens = consoles(outputs.json)
    with screens[1].status("Loading the model and translating …"):
        done = traced(given)
        if not done.generated:
            raise RegardError(f"translate: {done.model.name} is no encoder-decoder, it reads a text alone")
        found = seen(
            done.traces, layer=layer, head=head, kind=Translation, top=top, names=done.names, generated=done.generated
        )
    traces = done.traces if len(done.traces) > 1 else done.traces[0]
    tell(found, outputs, screens, everything=everything, traces=traces)
