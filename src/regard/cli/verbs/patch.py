"""`regard patch`: what one text's run had, put into another's, at every layer and place or head."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.capture.interventions.names import PARTS
from regard.cli import clock, options
from regard.cli.early_checks import EarlyChecks, check_lengths
from regard.cli.outputs import Outputs
from regard.cli.page_file import PageFile
from regard.cli.source import Source
from regard.cli.start import load_model
from regard.cli.store_outputs import HtmlFile
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.explain.causes.outcomes import Outcome
    from regard.models.model import Model
    from regard.web.page import Page

WHATS = ("hidden_states", "head_outputs", "values", "weights", "feed_forward")  # without torch: help does not wait
BYS = ("positions", "heads")

Both = Annotated[list[str] | None, typer.Argument(metavar="CLEAN CORRUPTED", help="Two texts that differ in a word.")]
What = Annotated[str, typer.Option(metavar="WHAT", help=f"What is patched: {', '.join(WHATS)}.")]
By = Annotated[str | None, typer.Option(metavar="BY", help="A patch for each of the positions, or of the heads.")]
Token = Annotated[str | None, typer.Option(help="Measure this next token: its probability.")]
Against = Annotated[str | None, typer.Option(help="With --token: its logit less that of this one.")]
Word = Annotated[
    str | None, typer.Option(help="Measure this word, needed without --token: its cosine to the clean one.")
]
At = Annotated[list[str] | None, typer.Option(metavar="WORD", help="Patch at this word alone; may be given again.")]
Layers = Annotated[options.Numbers | None, options.numbers("--layers", "Patch these layers alone.")]
Noising = Annotated[bool, typer.Option("--noising", help="Put the corrupted text's into the clean one, not back.")]
Targets = Annotated[
    list[str] | None, typer.Option("--target", help="Of an encoder-decoder: the target of each text, in order.")
]
PartName = Annotated[str | None, typer.Option("--part", help="Of an encoder-decoder: encoder, decoder or cross.")]


def patch(
    texts: Both = None,
    what: What = "hidden_states",
    by: By = None,
    token: Token = None,
    against: Against = None,
    word: Word = None,
    at: At = None,
    layers: Layers = None,
    noising: Noising = False,
    model: options.ModelName = None,
    targets: Targets = None,
    part: PartName = None,
    figure: options.FigureFile = None,
    html: HtmlFile = None,
    json_file: options.JsonFile = None,
) -> None:
    """Patch one text's run with another's at every layer and place or head, and measure what each patch does."""
    from regard.text.tokens import check_text

    if not texts or len(texts) != 2:
        raise RegardError(f"given {len(texts or ())} texts, needs two: regard patch CLEAN CORRUPTED --word W")
    for number, text in enumerate(texts, 1):
        check_text(text, f"text {number}")
    for option, given, names in (("--what", what, WHATS), ("--by", by, BYS), ("--part", part, PARTS)):
        if given is not None and given not in names:
            raise RegardError(f"{option}: given {given!r}, needs one of {', '.join(names)}")
    if token is None and word is None:
        raise RegardError("--word is needed, or --token: what patches are measured by")
    if token is not None and word is not None:
        raise RegardError("--word and --token: patches are measured by one of them, given both")
    if against is not None and token is None:
        raise RegardError("--against needs --token: it is the token that this one is compared with")
    if targets and len(targets) != 2:
        raise RegardError(f"--target: given {len(targets)}, needs one for each of the two texts")
    outputs = Outputs(figure, json_file, html=PageFile(html))
    outputs.check()
    early = EarlyChecks.of(Source(texts, targets or (), model))
    early.check_word(word)
    if model is None and not at:
        check_lengths(*(texts if noising else reversed(texts)))

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.explain.causes.patch_sweep import patch_sweep
    from regard.views.json import patch_data
    from regard.views.terminal.patch_sweep import show_patches

    console, errors = consoles(json_file)
    clean, corrupted = texts
    with errors.status("loading the model …") as status:
        opened = load_model(model)
        both = (targets[0], targets[1]) if targets else None
        named: dict[str, object] = {"by": by, "part": part}
        found = patch_sweep(
            opened,
            clean,
            corrupted,
            _outcome(opened, clean, both, token, against, word),
            what=what,  # type: ignore[arg-type]  # checked above
            direction="noising" if noising else "denoising",
            layers=layers,
            at=list(at) if at else None,
            targets=both,
            progress=lambda done, every: status.update(f"patching … {done} of {every}"),
            **named,  # type: ignore[arg-type]  # patch_sweep says what they may be
        )

    def draw(file: Path) -> list[str]:
        from regard.views.figures.patch_sweep import draw_patches

        return draw_patches(found, file)

    def page(_: PageFile) -> "Page":
        from regard.web.patch_sweep import sweep_page

        return sweep_page(found)

    notes = outputs.write(draw=draw, data=lambda: patch_data(found), page=page)
    show_patches(found, console, clock.seconds())
    finish(console, errors, outputs.files, notes)


def _outcome(
    model: "Model",
    clean: str,
    targets: tuple[str, str] | None,
    token: str | None,
    against: str | None,
    word: str | None,
) -> "Outcome":
    """What patches are measured by."""
    from regard.explain.causes.outcomes import cosine, logit_difference, probability

    if token is not None:
        return probability(model, token) if against is None else logit_difference(model, token, against)
    assert word is not None
    side = model.trace(clean) if targets is None else model.trace(clean, target=targets[0]).decoder
    return cosine(word, side[word], "what it is in the clean text")
