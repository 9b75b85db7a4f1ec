"""`regard see`: what self-attention does to a word, or to every token of some texts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from regard.cli import options
from regard.cli.options import number, option
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import Source, traced
from regard.cli.start import load_model
from regard.cli.telling import tell, waiting
from regard.errors import RegardError
from regard.files import check_readable, read_regular
from regard.text.neutral_sentences import LEAST, SENTENCES, lacking

if TYPE_CHECKING:
    from torch import Tensor

    from regard.explain.texts.summary import Summary
    from regard.trace.trace import PairTrace, Trace


OF_MODEL = ("model", "learned")  # the model's token embeddings instead of a file; the second is the old name


@writes("figure of texts", "csv", "json", "html of traces", "save parts")
def see(
    texts: options.Texts = None,
    targets: options.Targets = None,
    seconds: options.Seconds = None,
    word: Annotated[str | None, option("--word", "an overview of all tokens")] = None,
    references: Annotated[list[str] | None, option("--compare")] = None,
    control: Annotated[Path | None, option("--control", "39 English sentences")] = None,
    model: options.ModelName = None,
    layer: Annotated[int | None, number("--layer", "all")] = None,
    head: Annotated[int | None, number("--head", "all")] = None,
    top: options.Top = 5,
    next_token: Annotated[bool, option("--logit-lens")] = False,
    window: options.Window = None,
    stride: options.Stride = None,
    static: Annotated[str | None, option("--static")] = None,
    everything: options.All = False,
    open_file: options.OpenFile = None,
    images: Annotated[list[Path] | None, option("--image")] = None,
    remove: Annotated[str | None, option("--remove")] = None,
    chat: Annotated[Path | None, option("--chat")] = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Show what self-attention does to a word, or to all tokens, of your texts.

    Pass --layer or --head to show single heads. Pass --image to show where a vision model looks.
    """
    if word is not None and not word.strip():
        raise RegardError("--word is empty: give a word of the text")
    if images:
        told = {
            "--target-text": targets, "--second": seconds, "--compare": references, "--control": control,
            "--logit-lens": next_token or None, "--window": window, "--stride": stride, "--static": static,
            "--open": open_file, "--chat": chat, "--shape": outputs.shape != "slide",
        }  # fmt: skip
        for name, value in told.items():
            if value:
                raise RegardError(f"--image and {name}: given both, needs one of them")
        see_images(images, texts, model, word, layer, head, remove, top, everything, outputs)
        return
    if remove is not None:
        raise RegardError("--remove: needs --image: it ablates regions of the image")
    others = words_to_compare(references, word, opened=open_file is not None)
    for name, value in (("--control", control), ("--static", static)):
        if value is not None and not others:
            raise RegardError(f"{name} needs --word and --compare: pass all three")
    if static not in (None, *OF_MODEL):
        check_readable(Path(static), "--static")
    given = Source(texts or [], targets or [], model, window, stride, open_file, chat, seconds or [])
    given.check("see")
    sentences = SENTENCES if control is None else read_sentences(control, word or "")

    from regard.models.see_texts import trace_control, trace_word
    from regard.questions.see.answer import seen

    vectors = vectors_of_file(static, word or "", others)
    with waiting(outputs, "Loading and tracing …"):
        done = traced(given, needs_model=next_token)
        compared = [trace_word(done.model, each, "--compare") for each in others]
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
            found = replace(found, summary=with_static(found.summary, static, vectors, found.traces, compared))
    tell(replace(found, shape=outputs.shape), outputs, everything=everything, traces=found.traces)


def see_images(
    images: Sequence[Path],
    texts: Sequence[str] | None,
    model: str | None,
    word: str | None,
    layer: int | None,
    head: int | None,
    fill: str | None,
    top: int,
    everything: bool,
    outputs: Outputs,
) -> None:
    """Trace pictures, alone or with texts, and tell where the model looks.

    texts: one for each picture, or one that is asked of all. layer, head: None for the last layer and the mean of its
    heads. fill: what stands where a region is removed, None for removing none. top: so many patches are named.
    """
    if word is not None and not texts:
        raise RegardError("--image and --word: an image has no words: pass a TEXT too")
    if model is None:
        raise RegardError("--image needs --model: a model that reads images, which the default model does not")
    if fill not in (None, "blank", "mean", "blur"):
        raise RegardError(f"--remove: given {fill!r}, needs blank, mean or blur")
    for image in images:
        check_readable(image, "--image")
    from regard.questions.look.answer import looked

    with waiting(outputs, "Loading and tracing …"):
        asked = texts[0] if texts and len(texts) == 1 else texts
        opened = load_model(model)
        traces = opened.trace(asked, images=list(images))
        remove = None if fill is None else (opened, cast(Any, fill))
        found = looked(traces, layer, head, word, remove=remove)
    tell(found, outputs, top, everything=everything, traces=list(found.traces))


def words_to_compare(given: Sequence[str] | None, word: str | None, *, opened: bool) -> list[str]:
    """The words of --compare, each once, in the order given. opened: whether a file is looked at, without its model."""
    if not given:
        return []
    if word is None:
        raise RegardError("--compare needs --word: it compares that word with others")
    if opened:
        raise RegardError("--compare needs the model, to read its words: it cannot be used with --open")
    found = [each.strip() for each in ",".join(given).split(",")]
    if not all(found):
        raise RegardError(f"--compare {','.join(given)!r}: needs words separated by commas, one is empty")
    return list(dict.fromkeys(found))


def vectors_of_file(given: str | None, word: str, others: Sequence[str]) -> "Mapping[str, Tensor]":
    """Read the words' static vectors from a file, before a model is loaded; none where --static names none."""
    if given is None or given in OF_MODEL:
        return {}
    from regard.text.word_vectors import read_static

    found = read_static(Path(given), [word, *others])
    if word not in found:
        raise RegardError(f"--static {given}: it has no vector for {word!r}")
    return found


def with_static(
    seen: "Summary",
    given: str,
    vectors: "Mapping[str, Tensor]",
    traces: "Sequence[Trace] | Sequence[PairTrace]",
    references: "Sequence[Trace]",
) -> "Summary":
    """Add to a summary the static vectors of its word and of references, traces of a word each.

    given: the file of the vectors, or "model" for the model's token embeddings.
    """
    from regard.explain.vectors.static_words import learned_words, static_words

    word, words = seen.word or "", [each.text for each in references]
    if given in OF_MODEL:
        first = traces[0].sides[0]
        vectors, given = learned_words(word, first, references), f"the token embeddings of {first.status.model}"
    return replace(seen, static=static_words(vectors, word, words, given))


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
