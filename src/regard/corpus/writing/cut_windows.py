"""Cut a part of a document into the windows a model reads, find its words, and say which window each is taken from.

Words are as in `word_spans`.
"""

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from regard.corpus.settings import OVERLAP, WINDOW, Settings, Where, normal
from regard.errors import RegardError
from regard.models.model import Model
from regard.models.states import Window
from regard.models.windows import FAR, plan
from regard.text.tokens import Encoded, encode_all
from regard.text.words import word_spans
from regard.trace.trace import is_causal


@dataclass(frozen=True, eq=False)
class Units:
    """The words (or tokens) of a text that are kept, in order: n of each.

    words: as they are looked up. start, end: characters of the text. first: the number of the first token, of all of
    the text's; count: the number of tokens. lemmas: None if none were requested.
    """

    words: list[str]
    start: Int[np.ndarray, " n"]
    end: Int[np.ndarray, " n"]
    first: Int[np.ndarray, " n"]
    count: Int[np.ndarray, " n"]
    lemmas: list[str] | None

    def __len__(self) -> int:
        return len(self.words)

    def take(self, chosen: Int[np.ndarray, " m"]) -> "Units":
        """Return some of them, by their numbers."""
        return Units(
            [self.words[n] for n in chosen],
            self.start[chosen],
            self.end[chosen],
            self.first[chosen],
            self.count[chosen],
            None if self.lemmas is None else [self.lemmas[n] for n in chosen],
        )


def find_words(
    text: str,
    token_starts: Int[np.ndarray, " L"],
    token_ends: Int[np.ndarray, " L"],
    tokens: Int[np.ndarray, " L"],
    where: Where | None,
    language: str | None,
) -> tuple[Units, list[tuple[int, int]]]:
    """Find the words of a text that are kept; and the characters of those that no token stands for.

    token_starts, token_ends, tokens: characters and numbers of the tokens that stand for some, in order. where: which
    words are kept, None for all. language: the one whose lemmas are looked up, None for no lemmas.
    """
    words, spans, lemmas = [], [], []
    for start, end in word_spans(text):
        word = _interned_word_looked_up(text[start:end])
        lemma = None if language is None else find_lemma(text[start:end], language)
        if where is None or (word if where.field == "word" else lemma) in where.values:
            words.append(word)
            spans.append((start, end))
            lemmas.append(lemma)
    edges = np.array(spans, dtype=np.int64).reshape(-1, 2)
    first = np.searchsorted(token_ends, edges[:, 0], side="right")
    last = np.searchsorted(token_starts, edges[:, 1], side="left")
    found = last > first
    known = None if language is None else [str(lemma) for lemma in lemmas]
    units = Units(words, edges[:, 0], edges[:, 1], first, last - first, known).take(np.flatnonzero(found))
    return replace(units, first=tokens[units.first]), [spans[n] for n in np.flatnonzero(~found)]


def find_tokens(
    text: str, token_starts: Int[np.ndarray, " L"], token_ends: Int[np.ndarray, " L"], tokens: Int[np.ndarray, " L"]
) -> Units:
    """Take every token that stands for characters as a unit: it is looked up by those."""
    words = [
        _interned_word_looked_up(text[a:b].strip())
        for a, b in zip(token_starts.tolist(), token_ends.tolist(), strict=True)
    ]
    return Units(words, token_starts, token_ends, tokens, np.ones(len(tokens), np.int64), None)


def check_lemma_language(language: str) -> None:
    """Check that lemmas of a language can be found."""
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
    """Return the lemma of a word as it stands, composed and case-folded; the word itself if none is known."""
    import simplemma

    return normal(str(simplemma.lemmatize(form, lang=language)))


@functools.lru_cache(maxsize=1 << 17)
def _interned_word_looked_up(word: str) -> str:
    return sys.intern(normal(word))


@dataclass(frozen=True)
class WindowSize:
    """How texts are cut into windows. causal: whether the model only looks back, so the right edge doesn't count."""

    window: int
    stride: int
    causal: bool


@dataclass(frozen=True, eq=False)
class CutText:
    """A part's tokens, and the windows it is read in. spans: the tokens [start, stop) of the part that each has.

    before: special tokens in front of each. ids, starts, ends, special: of all tokens; characters are the part's.
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
    """Return the size of windows for a model, which makes one short pass to see whether it looks ahead."""
    window, stride = window_tokens(model, settings)
    trace = model.trace("One two three four.", logits=False, attention_outputs=False)
    plan(encode_all(model.tokenizer, ["One two."])[0], model.tokenizer, window, stride, model.limit, model.name)
    return WindowSize(window, stride, is_causal(trace))


def window_tokens(model: Model, settings: Settings) -> tuple[int, int]:
    """Return the number of tokens per window, with special tokens, and the step between windows."""
    most = min(model.limit or WINDOW, WINDOW)
    window = most if settings.window is None else settings.window
    held = window - model.tokenizer.num_special_tokens_to_add(pair=False)
    return window, max(1, held - held // OVERLAP) if settings.stride is None else settings.stride


def cut_texts(model: Model, texts: Sequence[str], size: WindowSize) -> list[CutText | None]:
    """Tokenise texts and cut them; None for one of which the tokenizer leaves nothing."""
    cuts: list[CutText | None] = []
    for encoded in _encoded_texts_to_cut(model.tokenizer, texts):
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
    """Return the window that each run of tokens first to last is taken from: where it stands furthest from an edge.

    spans: the windows' tokens [start, stop). causal: whether a window's right side is no edge, as where the text begins
    or ends. -1 if no window has all of a run; of two alike the earlier one.
    """
    best, chosen = np.full(len(first), -1), np.full(len(first), -1)
    for number, (start, stop) in enumerate(spans):
        left = first - start if number > 0 else np.full(len(first), FAR)
        right = np.full(len(first), FAR) if causal or number == len(spans) - 1 else stop - 1 - last
        margin = np.where((first >= start) & (last < stop), np.minimum(left, right), -1)
        better = margin > best
        best[better], chosen[better] = margin[better], number
    return chosen


def _encoded_texts_to_cut(tokenizer: object, texts: Sequence[str]) -> list[Encoded | None]:
    """Tokenise all texts at once; where one of them leaves no token, one by one."""
    try:
        return list(encode_all(tokenizer, texts))
    except RegardError:
        if len(texts) == 1:
            return [None]
        return [encoded for text in texts for encoded in _encoded_texts_to_cut(tokenizer, [text])]
