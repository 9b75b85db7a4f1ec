"""Windows of long texts, and the window that each word is taken from."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard.corpus import Settings, Store
from regard.corpus.settings import Where
from regard.corpus.writing.cut_windows import (
    check_lemma_language,
    cut_texts,
    find_lemma,
    find_tokens,
    find_windows,
    find_words,
    settings_for_texts,
    text_pooling,
    vector_width,
    window_of_each_word,
    window_size,
)
from regard.errors import RegardError
from regard.trace.sentence_embedding import pool
from tests.support import MONEY, RIVER
from tests.trace.test_sentence_embedding import PROMPTS, SHAPES, folder_of, sentence_transformers


def by_runs(text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each character but blanks as a token of its own, numbered from 1."""
    places = np.array([n for n, c in enumerate(text) if not c.isspace()], dtype=np.int64)
    return places, places + 1, np.arange(1, len(places) + 1)


def words_of(text: str, where: Where | None = None, language: str | None = None) -> list[str]:
    return find_words(text, *by_runs(text), where, language)[0].words


def test_a_word_is_what_a_search_for_whole_words_finds() -> None:
    text = "The whale's ship: a Sperm-whale, WHALE_1 and whales!"
    assert words_of(text) == ["the", "whale", "s", "ship", "a", "sperm", "whale", "whale_1", "and", "whales"]
    assert len(words_of(text, Where("word", ("whale",)))) == len(re.findall(r"\bwhale\b", text, re.I)) == 2


def test_marks_belong_to_words_and_scripts_without_blanks_have_one_a_character() -> None:
    assert words_of("cafe\u0301 हिन्दी 東京") == ["café", "हिन्दी", "東", "京"]


def test_tokens_of_words() -> None:
    starts, ends, numbers = np.array([0, 3, 8]), np.array([3, 7, 12]), np.array([1, 2, 3])
    units, missed = find_words("fishing bank  🤗x", starts, ends, numbers, None, None)
    assert (units.first.tolist(), units.count.tolist()) == ([1, 3], [2, 1])  # fish + ing, bank
    assert units.words == ["fishing", "bank"]
    assert missed == [(15, 16)]  # the x that no token stands for


def test_lemmas() -> None:
    assert words_of("She ran, they run; banks", Where("lemma", ("run",)), "en") == ["ran", "run"]
    assert find_lemma("Banks", "en") == "bank"
    check_lemma_language("de")
    with pytest.raises(RegardError, match="simplemma knows no language 'xx'"):
        check_lemma_language("xx")


def test_tokens_as_units() -> None:
    units = find_tokens("A Bank", np.array([0, 1]), np.array([1, 6]), np.array([1, 2]))
    assert (units.words, units.first.tolist(), units.count.tolist()) == (["a", "bank"], [1, 2], [1, 1])
    assert len(units.take(np.array([1]))) == 1


@given(st.text(alphabet="aB é_1 .'\n-", max_size=60))
def test_spans_are_the_words(text: str) -> None:
    units, missed = find_words(text, *by_runs(text), None, None)
    assert missed == []
    assert [text[a:b] for a, b in zip(units.start, units.end, strict=True)] == re.findall(r"\w+", text)


TEXTS = [RIVER, MONEY, "Withdrawals!", "x"]
FLOAT32 = Settings(unit="texts", statistics=False, dtype="float32")


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


def vectors_by_text(store: Path) -> dict[str, list[np.ndarray]]:
    """The vectors of a store by the text of their row, in the order of the store."""
    found: dict[str, list[np.ndarray]] = {}
    with Store(store) as opened:
        for shard, first, vectors in opened.all_vectors():
            rows = opened.rows_at({shard: list(range(first, first + len(vectors)))}, ("form", "start"))
            for form, vector in zip(rows.list("form"), vectors, strict=True):
                found.setdefault(form, []).append(vector)
    return found


def written(tmp_path: Path, texts: list[str]) -> Path:
    (tmp_path / "texts").mkdir()
    for n, text in enumerate(texts):
        (tmp_path / "texts" / f"{n}.txt").write_text(text, "utf-8")
    return tmp_path / "texts"


@pytest.mark.parametrize("shape", SHAPES)
def test_texts_have_the_vectors_of_the_model(tmp_path: Path, minilm: Any, shape: str) -> None:
    kind, mode, modules, changes = SHAPES[shape]
    config = {"pooling_mode": mode, "include_prompt": shape != "llm2vec"}
    folder = folder_of(tmp_path / "m", minilm, config, *modules, kind=kind, changes=changes, **PROMPTS)
    model, texts = regard.load(folder, device="cpu"), written(tmp_path, TEXTS)
    for n, (prompt, asked) in enumerate(
        ((None, {}), ("query", {"prompt_name": "query"}), ("So : ", {"prompt": "So : "}))
    ):
        settings = Settings(unit="texts", statistics=False, dtype="float32", prompt=prompt)
        regard.corpus.embed(texts, tmp_path / str(n), model=model, settings=settings)
        found = vectors_by_text(tmp_path / str(n))
        assert set(found) == set(TEXTS)
        expected = model.embedding(TEXTS, **asked).numpy()
        for text, vector in zip(TEXTS, expected, strict=True):
            np.testing.assert_allclose(found[text][0], vector, atol=1e-6 * max(1, np.abs(vector).max()), rtol=0)


@pytest.mark.filterwarnings("ignore")
def test_they_are_sentence_transformers_own(tmp_path: Path, minilm: Any) -> None:
    kind, mode, modules, changes = SHAPES["embeddinggemma"]
    folder = folder_of(tmp_path / "m", minilm, {"pooling_mode": mode}, *modules, kind=kind, changes=changes, **PROMPTS)
    expected = sentence_transformers(folder).encode(TEXTS)
    regard.corpus.embed(
        written(tmp_path, TEXTS), tmp_path / "s", model=regard.load(folder, device="cpu"), settings=FLOAT32
    )
    for text, vector in zip(TEXTS, expected, strict=True):
        np.testing.assert_allclose(vectors_by_text(tmp_path / "s")[text][0], vector, atol=1e-6, rtol=0)


@pytest.mark.parametrize("include", [True, False])
def test_each_window_of_a_long_text_begins_with_the_prompt(tmp_path: Path, minilm: Any, include: bool) -> None:
    config = {"pooling_mode": "mean", "include_prompt": include}
    folder = folder_of(tmp_path / "m", minilm, config, "Dense", "Normalize", **PROMPTS)
    model, text = regard.load(folder, device="cpu"), "The old man fished in the sunny river near the bank. " * 9
    settings = settings_for_texts(Settings(unit="texts", statistics=False, window=31, dtype="float32"), model)
    assert settings.prompt == "title: none | text: "
    tokens = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    prompt = model.tokenizer(settings.prompt, add_special_tokens=False)["input_ids"]
    [cut] = cut_texts(model, [text], window_size(model, settings), settings.prompt)
    assert cut is not None
    assert len(cut.windows) > 3
    covered: set[int] = set()
    for window, (start, stop) in zip(cut.windows, cut.spans, strict=True):
        assert window.ids == [101, *prompt, *tokens[start - 1 : stop - 1], 102]
        assert len(window.ids) == 31
        covered |= set(range(start, stop))
    assert covered == set(range(1, len(tokens) + 1))
    units = find_windows(cut)
    assert next(text[a:b] for a, b in zip(units.start, units.end, strict=True)).startswith("The old man")
    regard.corpus.embed(written(tmp_path, [text]), tmp_path / "s", model=model, settings=settings)
    found = vectors_by_text(tmp_path / "s")
    pooling = text_pooling(settings, model)
    assert pooling.left_out == (0 if include else len(prompt) + 1)
    assert vector_width(settings, model) == 24
    for window, start, end in zip(cut.windows, units.start, units.end, strict=True):
        states = model.model(input_ids=torch.tensor([window.ids])).last_hidden_state[0].detach()
        vectors = [pool(states, pooling).numpy()]
        assert min(np.abs(each - vectors[0]).max() for each in found[text[start:end]]) < 1e-6


def test_a_text_that_the_tokenizer_drops_has_no_row(tmp_path: Path, minilm: Any) -> None:
    folder = folder_of(tmp_path / "m", minilm, {"pooling_mode": "cls"}, **PROMPTS)
    report = regard.corpus.embed(
        written(tmp_path, ["A bank.", "\u200b\u200b"]),
        tmp_path / "s",
        model=regard.load(folder, device="cpu"),
        settings=FLOAT32,
    )
    assert (report.counts["rows"], report.counts["documents"], report.counts["dropped"]) == (1, 2, 1)


def test_a_store_goes_on_with_the_same_pooling_alone(tmp_path: Path, minilm: Any) -> None:
    first = folder_of(tmp_path / "first", minilm, {"pooling_mode": "cls"}, **PROMPTS)
    texts = written(tmp_path, TEXTS)
    model = regard.load(first, device="cpu")
    regard.corpus.embed(texts, tmp_path / "s", model=model, settings=FLOAT32)
    again = regard.corpus.embed(texts, tmp_path / "s", model=model, settings=FLOAT32)
    assert again.built == 0
    (first / "1_Pooling" / "config.json").write_text('{"pooling_mode": "max"}')
    with pytest.raises(regard.RegardError, match="was made with setting pooling cls, given is max"):
        regard.corpus.embed(texts, tmp_path / "s", model=regard.load(first, device="cpu"), settings=FLOAT32)
    asked = Settings(unit="texts", statistics=False, dtype="float32", prompt="query")
    with pytest.raises(regard.RegardError, match="was made with setting prompt title: none | text: , given is query: "):
        regard.corpus.embed(texts, tmp_path / "s", model=model, settings=asked)


def test_what_cannot_be_pooled_is_refused_before_anything_is_written(tmp_path: Path, minilm: Any) -> None:
    texts, plain = written(tmp_path, TEXTS), regard.load(minilm.model, tokenizer=minilm.tokenizer)
    cased = folder_of(tmp_path / "m", minilm, {"pooling_mode": "cls"})
    model = regard.load(cased, device="cpu")
    long = Settings(unit="texts", statistics=False, prompt="a b c d e f g h " * 4)
    (cased / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    for asked, settings, says in (
        (plain, FLOAT32, "comes from no sentence encoder's folder"),
        (regard.load(cased, device="cpu"), FLOAT32, "puts texts in lower case, whose characters would be others"),
        (model, long, "prompt: its 33 tokens leave 0 of a window of 31 to the text, needs 8 or more"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            regard.corpus.embed(texts, tmp_path / "s", model=asked, settings=settings)
        assert not (tmp_path / "s" / "manifest.json").exists()
