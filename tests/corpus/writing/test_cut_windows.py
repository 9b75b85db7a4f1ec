"""Windows of long texts, and the window that each word is taken from."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.settings import Settings
from regard.corpus.writing.cut_windows import cut_texts, window_of_each_word, window_size


@given(st.integers(2, 40), st.integers(1, 90), st.integers(1, 3), st.booleans(), st.data())
def test_owners_are_the_windows_with_most_around(room: int, length: int, run: int, causal: bool, data: Any) -> None:
    stride = data.draw(st.integers(1, max(1, room - 1)))
    starts = list(range(0, max(1, length - room + stride), stride))
    starts[-1] = max(0, length - room)
    spans = [(start, min(start + room, length)) for start in starts]
    first = np.arange(max(0, length - run + 1))
    found = window_of_each_word(first, first + run - 1, spans, causal)
    for token, chosen in zip(first.tolist(), found.tolist(), strict=True):
        last, margins = token + run - 1, []
        for number, (start, stop) in enumerate(spans):
            left = token - start if number else 1 << 40
            right = stop - 1 - last if number < len(spans) - 1 and not causal else 1 << 40
            margins.append(min(left, right) if start <= token and last < stop else -1)
        assert chosen == (-1 if max(margins) < 0 else margins.index(max(margins)))


def test_cut_as_the_trace_in_windows_is(minilm: Any) -> None:
    text = "The old man fished in the sunny river near the bank. " * 9
    size = window_size(minilm, Settings(window=40, stride=19))
    assert (size.window, size.stride, size.causal) == (40, 19, False)
    (cut,) = cut_texts(minilm, [text], size)
    assert cut is not None
    read = minilm.trace(text, window=40, stride=19)
    assert tuple(cut.spans) == read.spans
    assert [window.ids for window in cut.windows] == [[t.id for t in window.tokens] for window in read.windows]
    every = np.arange(1, len(cut.ids) - 1)
    assert window_of_each_word(every, every, cut.spans, False).tolist() == list(read.source[1:-1])


def test_sizes_that_are_not_given(minilm: Any) -> None:
    size = window_size(minilm, Settings())
    assert (size.window, size.stride) == (512, 383)  # of 510 tokens of the text three quarters


def test_a_text_of_which_nothing_is_left(minilm: Any) -> None:
    size = window_size(minilm, Settings())
    cuts = cut_texts(minilm, ["A bank.", "\u200b\u200b", "Another."], size)
    assert [cut is None for cut in cuts] == [False, True, False]


WORDS = st.lists(st.sampled_from(["river", "bank", "unbelievable", "a", "été", "x:", "\n", "(money)"]), max_size=60)


@given(WORDS.map(" ".join), st.sampled_from(["", "query: ", "So:", "title: none | text: "]), st.integers(23, 43))
def test_behind_a_prompt_windows_are_those_of_the_text(minilm: Any, text: str, prompt: str, window: int) -> None:
    size = window_size(minilm, Settings(unit="texts", statistics=False, window=window, prompt=prompt))
    alone = minilm.tokenizer(text, add_special_tokens=False)["input_ids"]
    asked = minilm.tokenizer(prompt, add_special_tokens=False)["input_ids"]
    [cut] = cut_texts(minilm, [text], size, prompt)
    if not alone:
        assert cut is None
        return
    assert cut is not None
    assert cut.ids.tolist() == [101, *alone, 102]
    assert cut.encoded.text == text
    assert [text[a:b] for a, b in zip(cut.starts, cut.ends, strict=True)] == [
        text[a:b] for a, b in minilm.tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    ]
    covered = set()
    for read, (start, stop) in zip(cut.windows, cut.spans, strict=True):
        assert read.ids == [101, *asked, *cut.ids[start:stop].tolist(), 102]
        assert len(read.ids) <= window
        covered |= set(range(start, stop))
    assert covered == set(range(1, len(alone) + 1))
