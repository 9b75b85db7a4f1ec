"""`regard.see`: look at texts in one line of Python, as the command of that name does."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.models.load import load
from regard.models.model import Model
from regard.text.neutral_sentences import SENTENCES, neutral_sentences
from regard.text.tokens import encode
from regard.trace.display import see as see_traces
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    from regard.questions.see.answer import Seen


def trace_control(model: Model, traces: Sequence[Any], word: str, sentences: Sequence[str] = SENTENCES) -> list[Trace]:
    """Trace neutral sentences with the word as the texts spell it; of a model that reads pairs, as its encoder does.

    Of spellings that are the same tokens one is taken ("Bank" and "bank" to a model that knows no capitals). Of the
    sentences that come with the package those are left out that are longer than the model can read.

    traces: of the texts. sentences: as `neutral_sentences` takes them.
    """
    filled = [each for spelled in spellings(traces, word) for each in neutral_sentences(spelled, sentences)]
    found = list(dict.fromkeys(filled))
    if model.limit is not None:
        fits = [len(encode(model.tokenizer, each).tokens) <= model.limit for each in found]
        if not all(fits) and sentences is not SENTENCES:
            long = found[fits.index(False)]
            raise RegardError(f"control: {long[:60]!r} is longer than the {model.limit} tokens that {model.name} reads")
        found = [each for each, good in zip(found, fits, strict=True) if good]
    if not found:
        return []
    if model.pairs:  # what stands in the target does not reach the encoder
        both = model.trace(found, target=[word] * len(found), logits=False, attention_outputs=False)
        return [each.encoder for each in both]
    return model.trace(found, logits=False, attention_outputs=False)


def spellings(traces: Sequence[Any], word: str) -> list[str]:
    """List how texts spell a word, each spelling that is of other tokens once; nothing where they do not have it."""
    found: dict[tuple[int, ...], str] = {}
    for trace in traces:
        text = trace.encoder if isinstance(trace, PairTrace) else trace
        try:
            for each in text.word(word):
                found.setdefault(tuple(text.tokens[n].id for n in each.tokens), each.text)
        except RegardError:  # `see` says it
            continue
    return list(found.values())


def trace_word(model: Model, word: str, option: str) -> Trace:
    """Trace a reference word as a text of its own; of an encoder-decoder, as its encoder reads it.

    option: how it was given, for messages.
    """
    try:
        if not model.pairs:
            return model.trace(word)
        return model.trace(word, target=word).encoder  # which no target reaches
    except RegardError as error:
        raise RegardError(f"{option} {word[:40]!r}: {error}") from None


def see(
    texts: str | Sequence[str],
    word: str | None = None,
    *,
    references: str | Sequence[str] = (),
    control: Sequence[str] = SENTENCES,
    target: str | Sequence[str] | None = None,
    window: int | None = None,
    stride: int | None = None,
    model: Model | str | None = None,
    layer: int | None = None,
    head: int | None = None,
    top: int = 5,
) -> "Seen":
    """Trace texts and look at a word in them, or without one at what is most worth a look.

    Args:
        texts: one or several.
        word: in every text.
        references: words to compare it with, each read as a text of its own.
        control: neutral sentences with {} in the word's place, which tell what the texts do to the word beside the
            references from what any sentence does; by default those that come with the package.
        target: of an encoder-decoder, what its decoder reads: one, or one for each text (`model.generate` writes one).
        window, stride: read each text in overlapping windows of so many tokens, as `Model.trace` does; each window is
            shown as a text of its own, those alone that have the word.
        model: what `regard.load` gives or takes; None for the default model.
        layer, head: single heads to show beside the mean of heads. top: how many tokens to name.

    Returns a `Seen`, which shows itself, has the numbers as `.summary`, the sentences as `.findings()`, the traces
    as `.traces`, and draws itself with `.plot()`.

    Raises:
        RegardError: as `regard.load`, `Model.trace` and `Trace.see`.
    """
    opened = model if isinstance(model, Model) else load(model)
    given, words = _listed_texts_to_trace("texts", texts), _listed_texts_to_trace("references", references)
    targets = None if target is None else _listed_texts_to_trace("target", target)
    traces: Any = opened.trace(given, target=targets, window=window, stride=stride)
    compared: Any = opened.trace(words, target=words if opened.pairs else None) if words else []
    beside = [each.sides[0] for each in compared]
    neutral = trace_control(opened, traces, word, control) if words and word is not None else None
    return see_traces(traces, word, references=beside, control=neutral, layer=layer, head=head, top=top)


def _listed_texts_to_trace(what: str, texts: str | Sequence[str]) -> list[str]:
    if not isinstance(texts, (str, Sequence)):
        raise RegardError(f"{what}: given {type(texts).__name__}, needs a text or a list of them")
    return [texts] if isinstance(texts, str) else list(texts)
