"""Cut texts into windows for a model, find their words (`word_spans`), and choose the window of each word."""

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from regard.corpus.settings import OVERLAP, WINDOW, Settings, Where, lookup_key
from regard.errors import RegardError
from regard.models.model import Model
from regard.models.states import Window
from regard.models.windows import FAR, plan
from regard.text.tokens import Encoded, encode_all
from regard.text.words import word_spans
from regard.trace.trace import is_causal


@dataclass(frozen=True, eq=False)
class Units:
    """The n words (or tokens) of a text that are stored, in order.

    words: their lookup keys. start, end: their character positions in the text. first: the index of a word's first
    token in the text. count: its number of tokens. lemmas: None if not requested.
    """

    words: list[str]
    start: Int[np.ndarray, " n"]
    end: Int[np.ndarray, " n"]
    first: Int[np.ndarray, " n"]
    count: Int[np.ndarray, " n"]
    lemmas: list[str] | None

    def __len__(self) -> int:
        return len(self.words)

    def take(self, indices: Int[np.ndarray, " m"]) -> "Units":
        """Return the units at these indices."""
        return Units(
            [self.words[n] for n in indices],
            self.start[indices],
            self.end[indices],
            self.first[indices],
            self.count[indices],
            None if self.lemmas is None else [self.lemmas[n] for n in indices],
        )


def find_words(
    text: str,
    token_starts: Int[np.ndarray, " L"],
    token_ends: Int[np.ndarray, " L"],
    tokens: Int[np.ndarray, " L"],
    where: Where | None,
    language: str | None,
) -> tuple[Units, list[tuple[int, int]]]:
    """Return the words of a text to store, and the character spans of words without a token.

    token_starts, token_ends, tokens: character positions and indices of the non-special tokens that have characters, in
    order. where: a filter of words, None for all. language: the language of lemmas, None for no lemmas.
    """
    words, spans, lemmas = [], [], []
    for start, end in word_spans(text):
        word = _interned_lookup_key(text[start:end])
        lemma = None if language is None else find_lemma(text[start:end], language)
        if where is None or (word if where.field == "word" else lemma) in where.values:
            words.append(word)
            spans.append((start, end))
            lemmas.append(lemma)
    edges = np.array(spans, dtype=np.int64).reshape(-1, 2)
    first = np.searchsorted(token_ends, edges[:, 0], side="right")
    last = np.searchsorted(token_starts, edges[:, 1], side="left")
    has_token = last > first
    known_lemmas = None if language is None else [str(lemma) for lemma in lemmas]
    units = Units(words, edges[:, 0], edges[:, 1], first, last - first, known_lemmas).take(np.flatnonzero(has_token))
    return replace(units, first=tokens[units.first]), [spans[n] for n in np.flatnonzero(~has_token)]


def find_tokens(
    text: str, token_starts: Int[np.ndarray, " L"], token_ends: Int[np.ndarray, " L"], tokens: Int[np.ndarray, " L"]
) -> Units:
    """Return every token in `tokens` as a unit whose lookup key is made from its characters."""
    words = [
        _interned_lookup_key(text[a:b].strip()) for a, b in zip(token_starts.tolist(), token_ends.tolist(), strict=True)
    ]
    return Units(words, token_starts, token_ends, tokens, np.ones(len(tokens), np.int64), None)


def check_lemma_language(language: str) -> None:
    """Check that simplemma is installed and knows a language."""
    try:
        import simplemma
    except ImportError as error:
        raise RegardError('lemmas need simplemma: pip install "regard[corpus]"') from error
    try:
        simplemma.lemmatize("word", lang=language)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RegardError(f"--lemma: simplemma knows no language {language!r}; it needs a code such as en") from error


@functools.lru_cache(maxsize=1 << 17)
def find_lemma(form: str, language: str) -> str:
    """Return the lemma of a word as a lookup key, or the word's own key if no lemma is known."""
    import simplemma

    return lookup_key(str(simplemma.lemmatize(form, lang=language)))


@functools.lru_cache(maxsize=1 << 17)
def _interned_lookup_key(word: str) -> str:
    return sys.intern(lookup_key(word))


@dataclass(frozen=True)
class WindowSize:
    """The tokens per window, the step between windows, and whether the model is causal."""

    window: int
    stride: int
    causal: bool


@dataclass(frozen=True, eq=False)
class CutText:
    """A text's tokens, and the windows in which it is read. spans: each window's range [start, stop) of tokens.

    before: number of special tokens at a window's start. ids, starts, ends, special: arrays over all tokens.
    """

    encoded: Encoded
    windows: list[Window]
    spans: list[tuple[int, int]]
    before: int
    ids: Int[np.ndarray, " L"]
    starts: Int[np.ndarray, " L"]
    ends: Int[np.ndarray, " L"]
    special: Bool[np.ndarray, " L"]


def window_size(model: Model, settings: Settings) -> WindowSize:
    """Return the window size for a model, after a short forward pass that shows whether it is causal."""
    window, stride = window_tokens(model, settings)
    trace = model.trace("One two three four.", logits=False, attention_outputs=False)
    plan(encode_all(model.tokenizer, ["One two."])[0], model.tokenizer, window, stride, model.limit, model.name)
    return WindowSize(window, stride, is_causal(trace))


def window_tokens(model: Model, settings: Settings) -> tuple[int, int]:
    """Return the number of tokens per window, including special tokens, and the step between windows."""
    limit = min(model.limit or WINDOW, WINDOW)
    window = limit if settings.window is None else settings.window
    content = window - model.tokenizer.num_special_tokens_to_add(pair=False)
    return window, max(1, content - content // OVERLAP) if settings.stride is None else settings.stride


def cut_texts(model: Model, texts: Sequence[str], size: WindowSize) -> list[CutText | None]:
    """Tokenize texts and cut each into windows. The result for a text without tokens is None."""
    cuts: list[CutText | None] = []
    for encoded in _encode_texts(model.tokenizer, texts):
        if encoded is None:
            cuts.append(None)
            continue
        cut = plan(encoded, model.tokenizer, size.window, size.stride, model.limit, model.name)
        tokens, all_ids, windows = encoded.tokens, encoded.ids, []
        for start, stop in cut.spans:
            run = [*range(cut.before), *range(start, stop), *range(len(tokens) - cut.after, len(tokens))]
            segments = None if encoded.segments is None else tuple(encoded.segments[n] for n in run)
            windows.append(Window([all_ids[n] for n in run], segments))
        ids, starts, ends = (np.array([getattr(token, name) for token in tokens]) for name in ("id", "start", "end"))
        special = np.array([token.special for token in tokens])
        cuts.append(CutText(encoded, windows, list(cut.spans), cut.before, ids, starts, ends, special))
    return cuts


def window_of_each_word(
    first: Int[np.ndarray, " n"], last: Int[np.ndarray, " n"], spans: Sequence[tuple[int, int]], causal: bool
) -> Int[np.ndarray, " n"]:
    """Return the window in which each word (tokens first to last) is furthest from the window's edges.

    spans: each window's range [start, stop) of tokens. causal: whether to ignore right edges. The start and end of the
    text aren't edges. Among equally good windows, the first is chosen. -1 if no window has the whole word.
    """
    largest_margin, best = np.full(len(first), -1), np.full(len(first), -1)
    for number, (start, stop) in enumerate(spans):
        left = first - start if number > 0 else np.full(len(first), FAR)
        right = np.full(len(first), FAR) if causal or number == len(spans) - 1 else stop - 1 - last
        margin = np.where((first >= start) & (last < stop), np.minimum(left, right), -1)
        better = margin > largest_margin
        largest_margin[better], best[better] = margin[better], number
    return best


def _encode_texts(tokenizer: object, texts: Sequence[str]) -> list[Encoded | None]:
    """Tokenize all texts at once, or one by one if one of them has no token."""
    try:
        return list(encode_all(tokenizer, texts))
    except RegardError:
        if len(texts) == 1:
            return [None]
        return [encoded for text in texts for encoded in _encode_texts(tokenizer, [text])]
