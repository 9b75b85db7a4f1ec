"""Texts longer than their model, in windows: the tokenizer's own overflow is the truth, and single passes are."""

import pytest
import torch

import regard
from regard.explain.texts.occurrences import unfold_texts_to_windows
from regard.explain.texts.summary import summarise
from regard.models.windows import plan, sides
from regard.text.tokens import encode, encoded_ids
from regard.trace.trace import Trace
from tests.said.reading import numbers_in
from tests.support import generation
from tests.support.own_models import pair
from tests.support.pictures import texts_of

TEXT = (
    "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, and "
    "nothing particular to interest me on shore, I thought I would sail about a little and see the watery part of the "
    "world. It is a way I have of driving off the spleen and regulating the circulation. Whenever I find myself "
    "involuntarily pausing before coffin warehouses, then, I account it high time to get to sea as soon as I can."
)


@pytest.fixture(scope="module")
def read(minilm):
    return minilm.trace(TEXT, window=29, stride=11)


def test_windows_are_those_that_the_tokenizer_itself_makes(minilm, read) -> None:
    theirs = minilm.tokenizer(TEXT, max_length=29, stride=29 - 2 - 11, truncation=True, return_overflowing_tokens=True)[
        "input_ids"
    ]
    ours = [[token.id for token in window.tokens] for window in read.windows]
    assert len(ours) == len(theirs) > 4
    assert ours[:-1] == theirs[:-1]
    assert len(ours[-1]) == 29  # moved back to the end, where theirs is short
    assert ours[-1][-len(theirs[-1]) + 1 :] == theirs[-1][1:]


def test_every_window_is_a_text_of_its_own(minilm, read) -> None:
    for (start, stop), window in zip(read.spans, read.windows, strict=True):
        inside = read.tokens[start:stop]
        assert window.text == TEXT[inside[0].start : inside[-1].end]
        spelled = [window.text[t.start : t.end] for t in window.tokens if not t.special]
        assert spelled == [TEXT[t.start : t.end] for t in inside]
    alone = minilm.trace(read.windows[2].text)  # begins and ends with whole words here
    assert [t.id for t in alone.tokens] == [t.id for t in read.windows[2].tokens]
    torch.testing.assert_close(alone.last_hidden_state, read.windows[2].last_hidden_state, atol=1e-5, rtol=0)


def test_every_token_comes_from_the_window_in_which_it_stands_furthest_from_an_edge(read) -> None:
    last = len(read.tokens) - 1
    assert read.spans[0][0] == 1
    assert read.spans[-1][1] == last
    for n in range(1, last):
        margins = {}
        for k, (start, stop) in enumerate(read.spans):
            if start <= n < stop:
                left = n - start if k > 0 else torch.inf
                right = stop - 1 - n if k < len(read.spans) - 1 else torch.inf
                margins[k] = min(left, right)
        assert read.source[n] == max(margins, key=lambda k: (margins[k], -k)), n
    assert (read.source[0], read.source[last]) == (0, len(read.windows) - 1)
    for n in range(last + 1):
        window, place = read.place(n)
        assert window.tokens[place].id == read.tokens[n].id
        assert torch.equal(read.last_hidden_state[n], window.last_hidden_state[place])
        assert torch.equal(read.hidden_states[3][n], window.hidden_states[3][place])
        assert torch.equal(read.token_embeddings[n], window.token_embeddings[place])
    assert read.logits is None


def test_words_are_found_in_the_whole_text_and_in_their_window(read) -> None:
    for word in ("Ishmael", "warehouses", "sea", "I", "see the watery part"):
        for found in read.word(word):
            window, own = read.locate(found)
            assert window.text[own.start : own.end] == TEXT[found.start : found.end]
            assert [window.tokens[n].id for n in own.tokens] == [read.tokens[n].id for n in found.tokens]
            assert own in window.word(word)
    with pytest.raises(regard.RegardError, match="fits into no window"):
        read.locate(read.word(TEXT[TEXT.index("and see") : TEXT.index(" Whenever")])[0])


def test_it_shows_and_draws_itself_as_the_windows_that_have_the_word(minilm, read) -> None:
    seen = regard.see(read, "sea")
    unfolded = unfold_texts_to_windows([read], "sea")
    assert seen.summary == summarise(unfolded.traces, "sea", unfolded=unfolded)
    assert seen.traces == unfolded.traces
    assert [o.label for o in seen.summary.occurrences] == [f"1.{window.window + 1}" for window in unfolded.windows]
    assert regard.see(TEXT, "sea", window=29, stride=11, model=minilm).summary.texts == seen.summary.texts
    figure = read.plot("sea", layer=0, head=3)
    assert any(text.startswith("layer 0, head 3 · ") for text in texts_of(figure))
    assert len(regard.see(read).summary.texts) == len(read.windows)
    with pytest.raises(regard.RegardError, match="word 'lake' is not in the text"):
        regard.see(read, "lake")


def test_a_text_that_fits_one_window_is_read_as_without(minilm) -> None:
    whole, once = minilm.trace(TEXT), minilm.trace(TEXT, window=200, stride=20)
    assert len(once.windows) == 1
    assert torch.equal(once.last_hidden_state, whole.last_hidden_state)
    assert once.windows[0].tokens == once.tokens == whole.tokens
    assert "single window" in once.status.notes[-1]


def test_the_status_says_how_it_was_read(minilm, read) -> None:
    (note,) = read.status.notes
    assert numbers_in(note) == [str(len(read.windows)), "29", "11"]
    assert read.status.rows_compared == sum(window.status.rows_compared for window in read.windows) > 0
    assert read.status.difference < 5e-6
    odd = minilm.trace("a 🙂 bank " * 9, window=11, stride=4)
    assert odd.status.unknown == ("🙂",) * 9
    (first, second) = minilm.trace([TEXT, "a bank"], window=29)
    assert len(first.windows) > len(second.windows) == 1
    assert first.spans[1][0] - first.spans[0][0] == 13  # half of what a window holds of the text


def test_a_causal_model_takes_every_token_from_its_earliest_window() -> None:
    llama = generation.opened("llama", max_position_embeddings=64)
    ids = torch.randint(97, (150,), generator=torch.Generator().manual_seed(1)).tolist()
    read = llama.trace(ids=ids, window=40, stride=13, layers=[1], logits=False)
    for n in range(150):
        assert read.source[n] == min(k for k, (start, stop) in enumerate(read.spans) if start <= n < stop)
    with torch.no_grad():  # to a causal model the first window is the beginning of the text, read alone
        expected = llama.model.model(torch.tensor([ids[:40]])).last_hidden_state[0]
    torch.testing.assert_close(read.last_hidden_state[:40], expected, atol=1e-5, rtol=0)
    assert read.hidden_states.kept == (1, 2)
    with pytest.raises(regard.RegardError, match=r"states\[0\] was not kept"):
        read.hidden_states[0]


def test_a_stream_holds_one_window_after_another(minilm, read) -> None:
    made, windows = minilm.stream(TEXT, window=29, stride=11, layers=[2])
    found = list(windows)
    assert made.spans == read.spans
    assert made.sources(causal=False) == read.source
    for ours, theirs in zip(found, read.windows, strict=True):
        assert isinstance(ours, Trace)
        assert torch.equal(ours.attention[2].dense(), theirs.attention[2].dense())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"window": 513}, "window: got 513, but all-MiniLM-L6-v2 takes at most 512"),
        ({"window": 3}, "window: got 3, expected 4 or more: 2 of its tokens are special"),
        ({"window": 29, "stride": 27}, "stride: got 27, expected 1 to 26: a window of 29 tokens holds 27 of the text"),
        ({"window": 29, "stride": 0}, "stride: got 0, expected 1 to 26"),
        ({"stride": 5}, "stride: got 5, but no window"),
        (
            {"window": 29, "interventions": [regard.ablate(regard.edge("sea", "money"))]},
            "in windows you can only ablate heads",
        ),
    ],
)
def test_what_is_refused(minilm, options, says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        minilm.trace(TEXT, **options)


def test_encoder_decoders_are_refused() -> None:
    ids = {"ids": [5, 6, 7, 8, 9], "target_ids": [5, 6, 7]}
    with pytest.raises(regard.RegardError, match="is an encoder-decoder, which cannot read a text in windows"):
        pair().trace(**ids, window=4)
    with pytest.raises(regard.RegardError, match="is an encoder-decoder: all of its layers are kept"):
        pair().trace(**ids, layers=[0])


def test_windows_meet_without_a_gap_at_any_length(minilm) -> None:
    tokenizer = minilm.tokenizer
    for length in range(1, 40):
        encoded = encode(tokenizer, "bank " * length)
        for window, stride in ((4, 1), (7, 4), (9, 3), (12, 5)):
            made = plan(encoded, tokenizer, window, stride, 512, "it")
            covered = {n for start, stop in made.spans for n in range(start, stop)}
            assert covered == set(range(1, length + 1))
            assert all(b[0] - a[0] == stride for a, b in zip(made.spans[:-2], made.spans[1:-1], strict=False))
            assert all(0 < b[0] - a[0] <= stride for a, b in zip(made.spans, made.spans[1:], strict=False))
            assert {stop - start for start, stop in made.spans} == {min(length, window - 2)}
            assert all(start <= n < stop for n in covered for start, stop in [made.spans[made.sources(False)[n]]])
    bare = plan(encoded_ids(range(10)), None, 4, None, None, "it")  # no tokenizer, no special tokens
    assert bare.spans == ((0, 4), (2, 6), (4, 8), (6, 10))


def test_the_sides_of_what_is_shown(minilm, bank) -> None:
    windowed = minilm.trace(bank[0].text, window=8)
    assert sides(windowed) == windowed.windows
    assert list(sides(bank[0])) == [bank[0]]
