"""`regard see`: what self-attention does to a word, or to every token of some texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from regard.cli import options
from regard.cli.options import Selection, number
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import Source, traced
from regard.errors import RegardError
from regard.files import check_readable, read_regular
from regard.text.neutral_sentences import LEAST, SENTENCES, lacking

if TYPE_CHECKING:
    from torch import Tensor

    from regard.explain.texts.summary import Summary
    from regard.trace.trace import PairTrace, Trace


OF_MODEL = ("model", "learned")  # the model's token embeddings instead of a file; the second is the old name


@writes("figure", "csv", "json", "html of traces", "save parts")
def see(
    texts: options.Texts = None,
    targets: options.Targets = None,
    seconds: options.Seconds = None,
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
        told = {
            "--target-text": targets, "--second": seconds, "--compare": references, "--control": control,
            "--logit-lens": next_token or None, "--window": window, "--stride": stride, "--static": static,
            "--open": open_file, "--chat": chat,
        }  # fmt: skip
        see_images(images, texts, told, model, chosen, everything, outputs, remove)
        return
    if remove is not None:
        raise RegardError("--remove: needs --image: it ablates regions of the image")
    vectors = StaticVectors(static)
    vectors.check(chosen)
    neutral = ControlFile(control)
    neutral.check(chosen)
    given = Source(texts or [], targets or [], model, window, stride, open_file, chat, seconds or [])
    given.check("see")
    outputs.check()
    sentences = neutral.sentences(chosen)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.telling import consoles, tell
    from regard.models.see_texts import trace_control, trace_word
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


def see_images(
    images: Sequence[Path],
    texts: Sequence[str] | None,
    told: Mapping[str, object],
    model: str | None,
    chosen: Selection,
    everything: bool,
    outputs: Outputs,
    fill: str | None = None,
) -> None:
    """Trace pictures, alone or with texts, and tell where the model looks.

    texts: one for each picture, or one that is asked of all. told: what else was given, by its option. chosen: of layer
    and head None is the last layer and the mean of its heads; so many patches are named. fill: what stands where a
    region is removed, None for removing none.
    """
    for option, given in told.items():
        if given:
            raise RegardError(f"--image and {option}: given both, needs one of them")
    if chosen.word is not None and not texts:
        raise RegardError("--image and --word: an image has no words: pass a TEXT too")
    if model is None:
        raise RegardError("--image needs --model: a model that reads images, which the default model does not")
    if fill not in (None, "blank", "mean", "blur"):
        raise RegardError(f"--remove: given {fill!r}, needs blank, mean or blur")
    for image in images:
        check_readable(image, "--image")
    outputs.check()

    from regard.cli.start import load_model
    from regard.cli.telling import consoles, tell
    from regard.questions.look.answer import looked

    screens = consoles(outputs.json)
    with screens[1].status("Loading and tracing …"):
        asked = texts[0] if texts and len(texts) == 1 else texts
        opened = load_model(model)
        traces = opened.trace(asked, images=list(images))
        remove = None if fill is None else (opened, cast(Any, fill))
        found = looked(traces, chosen.layer, chosen.head, chosen.word, remove=remove)
    tell(found, outputs, screens, chosen.top, everything=everything, traces=list(found.traces))


@dataclass(frozen=True)
class ControlFile:
    """given: a file with one sentence a line; None for the sentences that come with the package."""

    given: Path | None

    def check(self, chosen: Selection) -> None:
        """Refuse sentences for no word beside others."""
        if self.given is not None and not chosen.reference_words:
            raise RegardError("--control needs --word and --compare: pass all three")

    def sentences(self, chosen: Selection) -> Sequence[str]:
        """The sentences, read before anything is loaded. Raises RegardError for a file that is none of these."""
        if self.given is None:
            return SENTENCES
        return read_sentences(self.given, chosen.word or "")


@dataclass(frozen=True)
class StaticVectors:
    """given: a file of word2vec or GloVe, "model", or None for no static vectors. found: the vectors of a file."""

    given: str | None
    found: "Mapping[str, Tensor]" = field(default_factory=dict)

    def check(self, chosen: Selection) -> None:
        """Refuse static vectors of no words, and a file that cannot be read."""
        if self.given is not None and not chosen.reference_words:
            raise RegardError("--static needs --word and --compare: it compares words' static vectors")
        if self.given not in (None, *OF_MODEL):
            check_readable(Path(self.given), "--static")

    def read(self, chosen: Selection) -> "StaticVectors":
        """Read the vectors of a file, where there is one, before a model is loaded."""
        if self.given in (None, *OF_MODEL):
            return self
        from regard.text.word_vectors import read_static

        found = read_static(Path(self.given), [chosen.word or "", *chosen.reference_words])
        if chosen.word not in found:
            raise RegardError(f"--static {self.given}: it has no vector for {chosen.word!r}")
        return replace(self, found=found)

    def beside(
        self, seen: "Summary", traces: "Sequence[Trace] | Sequence[PairTrace]", references: "Sequence[Trace]"
    ) -> "Summary":
        """The summary of traces with the static vectors of its word and of references, traces of a word each."""
        if self.given is None:
            return seen
        from regard.explain.vectors.static_words import learned_words, static_words

        word, words, vectors, name = seen.word or "", [each.text for each in references], self.found, self.given
        if self.given in OF_MODEL:
            first = traces[0].sides[0]
            vectors, name = learned_words(word, first, references), f"the token embeddings of {first.status.model}"
        return replace(seen, static=static_words(vectors, word, words, name))


def read_sentences(file: Path, word: str) -> list[str]:
    """Read neutral sentences from a file, one a line; blank lines and repeated ones are left out."""
    what = f"--control {str(file)!r}"
    try:
        lines = read_regular(file, "--control").decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise RegardError(f"{what} is not UTF-8 text: needs one sentence per line") from None
    for n, line in enumerate(lines, 1):
        if line.strip() and (lacks := lacking(line.strip(), word)):
            raise RegardError(f"{what}: line {n}, {lacks}")
    found = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if len(found) < LEAST:
        raise RegardError(f"{what}: {len(found)} different sentences, needs {LEAST} or more, one per line")
    return found
