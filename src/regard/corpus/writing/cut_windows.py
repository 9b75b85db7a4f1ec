"""Cut a part of a document into the windows a model reads, and say which window each word is taken from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from regard.corpus.settings import OVERLAP, WINDOW, Settings
from regard.errors import RegardError
from regard.models.model import Model
from regard.models.states import Window
from regard.models.windows import FAR, plan
from regard.text.tokens import Encoded, count_prompt_tokens, encode_all
from regard.trace.trace import is_causal

LEAST_BEHIND_PROMPT = 8  # tokens of the text in a window


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

    def first(self, span: slice) -> int:
        """Return the first character of some tokens of the part."""
        return int(self.starts[span].min())

    def last(self, span: slice) -> int:
        """Return the character behind the last of some tokens of the part."""
        return int(self.ends[span].max())


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
