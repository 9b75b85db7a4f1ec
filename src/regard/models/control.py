"""Trace the reference words and neutral sentences that a followed word is compared with."""

from collections.abc import Sequence
from typing import Any

from regard.errors import RegardError
from regard.models.model import Model
from regard.text.neutral_sentences import SENTENCES, neutral_sentences
from regard.text.tokens import encode
from regard.trace.trace import PairTrace, Trace


def trace_control(model: Model, traces: Sequence[Any], word: str, sentences: Sequence[str] = SENTENCES) -> list[Trace]:
    """Trace neutral sentences with the word, spelled as in the texts. For an encoder-decoder, return encoder traces.

    Of spellings with the same tokens ("Bank" and "bank" in an uncased model), only one is used. Sentences of the
    package that are longer than the model's limit are left out.

    traces: of the texts. sentences: as in `neutral_sentences`.
    """
    filled = [sentence for spelled in spellings(traces, word) for sentence in neutral_sentences(spelled, sentences)]
    filled = list(dict.fromkeys(filled))  # without duplicates
    if model.limit is not None:
        fits = [len(encode(model._tokenizer, sentence).tokens) <= model.limit for sentence in filled]
        if not all(fits) and sentences is not SENTENCES:
            long = filled[fits.index(False)]
            raise RegardError(f"control: {long[:60]!r} is longer than the {model.limit} tokens that {model.name} reads")
        filled = [sentence for sentence, good in zip(filled, fits, strict=True) if good]
    if not filled:
        return []
    if model.pairs:  # the target doesn't affect the encoder
        pairs = model.trace(filled, target=[word] * len(filled), logits=False, attention_outputs=False)
        return [pair.encoder for pair in pairs]
    return model.trace(filled, logits=False, attention_outputs=False)


def spellings(traces: Sequence[Any], word: str) -> list[str]:
    """List a word's spellings in the texts, one for each sequence of token ids, or [] if no text has the word."""
    result: dict[tuple[int, ...], str] = {}
    for trace in traces:
        text = trace.encoder if isinstance(trace, PairTrace) else trace
        try:
            for occurrence in text.word(word):
                result.setdefault(tuple(text.tokens[n].id for n in occurrence.tokens), occurrence.text)
        except RegardError:  # `see` reports a missing word
            continue
    return list(result.values())


def trace_word(model: Model, word: str, option: str) -> Trace:
    """Trace a reference word as a separate text. For an encoder-decoder, return the encoder's trace.

    option: the name of the command-line option with the word, for error messages.
    """
    try:
        if not model.pairs:
            return model.trace(word)
        return model.trace(word, target=word).encoder  # the target doesn't affect the encoder
    except RegardError as error:
        raise RegardError(f"{option} {word[:40]!r}: {error}") from None
