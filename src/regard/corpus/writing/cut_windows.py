"""Cut a part of a document into the windows a model reads, find its words, and say which window each is taken from.

Words are as `word_spans` has them.
"""

import functools
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.corpus.settings import OVERLAP, WINDOW, Settings, Where, normal
from regard.errors import RegardError
from regard.model_files.pooling import Dense, Pooling
from regard.models.model import Model
from regard.models.states import Window, state_width
from regard.models.windows import FAR, plan
from regard.text.tokens import Encoded, count_prompt_tokens, encode_all
from regard.text.words import word_spans
from regard.trace.sentence_embedding import check_pooling, pool, pooling_behind_prompt, prompted
from regard.trace.trace import is_causal

LEAST_BEHIND_PROMPT = 8  # tokens of the text in a window


@dataclass(frozen=True, eq=False)
class Units:
    """The words (or tokens) of a text that are kept, in order: n of each.

    words: as they are looked up. start, end: characters of the text. first: the number of the first token, of all of
    the text's; count: how many tokens. lemmas: None where none were asked for.
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
    """Return the lemma of a word as it stands, composed and case-folded; the word itself where none is known."""
    import simplemma

    return normal(str(simplemma.lemmatize(form, lang=language)))


@functools.lru_cache(maxsize=1 << 17)
def _interned_word_looked_up(word: str) -> str:
    return sys.intern(normal(word))


@dataclass(frozen=True)
class WindowSize:
    """How texts are cut for a model. causal: whether it looks back alone, so that a window's right edge is none."""

    window: int
    stride: int
    causal: bool


@dataclass(frozen=True, eq=False)
class CutText:
    """A part's tokens, and the windows it is read in. spans: the tokens [start, stop) of the part that each has.

    before: tokens in front of each: special ones, and those of the prompt. ids, starts, ends, special: of all tokens;
    characters are the part's.
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
    """Return the number of tokens per window, with special tokens and the prompt, and the step between windows."""
    most = min(model.limit or WINDOW, WINDOW)
    window = most if settings.window is None else settings.window
    held = window - model.tokenizer.num_special_tokens_to_add(pair=False)
    prompt = count_prompt_tokens(model.tokenizer, settings.prompt or "")
    if prompt and held - prompt < LEAST_BEHIND_PROMPT:
        raise RegardError(
            f"prompt: its {prompt} tokens leave {max(0, held - prompt)} of a window of {window} to the text, needs "
            f"{LEAST_BEHIND_PROMPT} or more (--window)"
        )
    held -= prompt
    return window, max(1, held - held // OVERLAP) if settings.stride is None else settings.stride


def cut_texts(model: Model, texts: Sequence[str], size: WindowSize, prompt: str = "") -> list[CutText | None]:
    """Tokenise texts and cut them; None for one of which the tokenizer leaves nothing. prompt: before each window."""
    return [
        None if each is None else _cut_into_windows(model, each, size, prompt)
        for each in _encoded_texts_to_cut(model.tokenizer, [prompt + text for text in texts])
    ]


def window_of_each_word(
    first: Int[np.ndarray, " n"], last: Int[np.ndarray, " n"], spans: Sequence[tuple[int, int]], causal: bool
) -> Int[np.ndarray, " n"]:
    """Return the window that each run of tokens first to last is taken from: where it stands furthest from an edge.

    spans: the windows' tokens [start, stop). causal: whether a window's right side is no edge, as where the text begins
    or ends. -1 where no window has all of a run; of two alike the earlier one.
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
        return [each for text in texts for each in _encoded_texts_to_cut(tokenizer, [text])]


def _cut_into_windows(model: Model, whole: Encoded, size: WindowSize, prompt: str) -> CutText | None:
    # how many tokens stand before the prompt's, and how many are its own: one that reaches into the text is not
    own = [n for n, token in enumerate(whole.tokens) if token.start < token.end <= len(prompt)]
    front = next((n for n, t in enumerate(whole.tokens) if not t.special or t.end > t.start), 0)
    asked = own[-1] + 1 - front if own else 0
    encoded = _without_prompt(whole, len(prompt), front, asked)
    tokens = encoded.tokens
    if prompt and all(token.special for token in tokens):
        return None
    cut = plan(encoded, model.tokenizer, size.window - asked, size.stride, model.limit, model.name)
    all_ids, end = whole.ids, len(whole.tokens) - cut.after
    windows = []
    for start, stop in cut.spans:
        run = [*range(cut.before + asked), *range(start + asked, stop + asked), *range(end, len(whole.tokens))]
        segments = None if whole.segments is None else tuple(whole.segments[n] for n in run)
        windows.append(Window([all_ids[n] for n in run], segments))
    ids, starts, ends = (np.array([getattr(token, name) for token in tokens]) for name in ("id", "start", "end"))
    special = np.array([token.special for token in tokens])
    return CutText(encoded, windows, list(cut.spans), cut.before + asked, ids, starts, ends, special)


def _without_prompt(encoded: Encoded, length: int, front: int, asked: int) -> Encoded:
    """A text's tokens alone, of those that it has behind a prompt of so many characters."""
    if not length:
        return encoded
    kept = [*range(front), *range(front + asked, len(encoded.tokens))]
    tokens = tuple(
        replace(token, start=max(0, token.start - length), end=max(0, token.end - length))
        for token in (encoded.tokens[n] for n in kept)
    )
    segments = None if encoded.segments is None else tuple(encoded.segments[n] for n in kept)
    return replace(encoded, text=encoded.text[length:], tokens=tokens, segments=segments)


def settings_for_texts(settings: Settings, model: Model) -> Settings:
    """Say in settings what the model's folder says of texts: the prompt itself, and how their tokens are pooled."""
    if settings.unit != "texts":
        return settings
    check_pooling(model.pooling, model.name)
    if model.pooling.lower_case:
        raise RegardError(f"--unit texts: {model.name} puts texts in lower case, whose characters would be others")
    named = settings.prompt in model.pooling.prompts
    prompt = prompted(model.pooling, None if named else settings.prompt, settings.prompt if named else None)
    pooling = model.pooling  # spelled out, so that another way of it is another text
    parts = [*pooling.modes, *map(_described_dense, pooling.dense), *["normalised"] * pooling.normalise]
    parts += ["without the prompt"] * (not pooling.include_prompt)
    return replace(settings, prompt=prompt, pooling=", ".join(parts))


def text_pooling(settings: Settings, model: Model) -> Pooling:
    """Return how windows that begin with the prompt of the settings are pooled."""
    return pooling_behind_prompt(model.pooling, settings.prompt or "", model.tokenizer)


def vector_width(settings: Settings, model: Model) -> int:
    """Return how many numbers a vector of the store has."""
    width = state_width(model)
    if settings.unit != "texts":
        return width
    pooling = text_pooling(settings, model)
    return len(pool(torch.zeros(pooling.left_out + 1, width), pooling))


def pool_windows(states: Float[Tensor, "B L M"], pooling: Pooling) -> Float[np.ndarray, "B P"]:
    """Pool what left the last layer of each window of a batch, in float32."""
    return torch.stack([pool(each, pooling) for each in states.float()]).cpu().numpy()


def find_windows(cut: CutText) -> Units:
    """Take every window of a text as a unit: it has no word, and the characters from its first token to its last.

    A text that fits into one window has the vector of `Model.embedding`. Each window of a longer one has its own row.
    """
    start = np.array([cut.starts[slice(*span)].min() for span in cut.spans], np.int64)
    end = np.array([cut.ends[slice(*span)].max() for span in cut.spans], np.int64)
    count = np.array([len(window.ids) for window in cut.windows], np.int64)
    return Units([""] * len(start), start, end, np.array([first for first, _ in cut.spans], np.int64), count, None)


def _described_dense(layer: Dense) -> str:
    tensors = [each for each in (layer.weight, layer.bias, layer.residual) if isinstance(each, Tensor)]
    digest = hashlib.sha256(b"".join(each.float().contiguous().numpy().tobytes() for each in tensors)).hexdigest()
    residual = " and residual" if layer.residual is not False else ""
    return f"dense {layer.activation}{residual} {digest[:16]}"
