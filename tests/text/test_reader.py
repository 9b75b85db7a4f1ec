"""Texts and ids read for a model: single or several, and what does not fit it."""

from typing import Any

import numpy as np
import pandas
import pytest
import torch
from transformers import BatchEncoding

from regard.errors import RegardError
from regard.models.inputs import model_inputs_of_trace
from tests.support.own_models import opened, pair

TEXT = "A man is fishing on a river bank."


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_one_or_several() -> None:
    reader = opened("gpt")._reader
    single, (one,) = reader.read("text", TEXT, None)
    several, (again,) = reader.read("text", [TEXT], None)
    assert (single, several) == (True, False)
    assert one.ids == again.ids
    array = np.array(one.ids)
    for ids in (one.ids, torch.tensor(one.ids), array, array.astype(np.uint16), list(array), list(torch.tensor(array)),
                pandas.Series(array), (n for n in one.ids)):  # fmt: skip
        single, (by_ids,) = reader.read("text", None, ids)
        assert single
        assert by_ids.ids == one.ids
    for rows in ([[1, 2], [3]], [np.array([1, 2]), torch.tensor([3])], [list(torch.tensor([1, 2])), range(3, 4)]):
        single, both = reader.read("text", None, rows)
        assert (single, [each.ids for each in both]) == (False, [[1, 2], [3]])
    for texts in (np.array(["A man", "A bank"]), pandas.Series(["A man", "A bank"]), {"A man": 1, "A bank": 2}.keys()):
        assert [each.text for each in reader.read("text", texts, None)[1]] == ["A man", "A bank"]


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("given", "ids", "says"),
    [
        (None, None, "needs either text or its ids, given none"),
        ("a", [1], "needs either text or its ids, given both"),
        ([], None, "given no text, needs at least one"),
        (3, None, "given int, needs a string or several of them"),
        (b"a", None, "given bytes, needs a string"),
        (torch.tensor(3), None, "given Tensor, needs a string"),
        ({"input_ids": [1]}, None, "text: given dict, needs a string or several of them, or token ids as ids="),
        (BatchEncoding({"input_ids": [1]}), None, "text: given BatchEncoding, .* as ids="),
        (pandas.DataFrame({"text": ["a"]}), None, "text: given DataFrame, .* as ids="),
        (None, BatchEncoding({"input_ids": [1]}), r"text ids: given BatchEncoding, needs .* encoding\['input_ids'\]"),
        (None, pandas.DataFrame({"ids": [1]}), "text ids: given DataFrame, needs a list of ids"),
        (None, 5, "text ids: given int, needs a list of ids"),
        (None, torch.tensor(5), "text ids: given Tensor, needs a list of ids"),
        (None, "12", "text ids: given str, needs a list of ids"),
        (None, [1.0, 2.0], "text ids: given float, needs a list of ids"),
        (None, [[1.5, 2.0]], r"text ids: given \[1.5, 2.0\], needs whole numbers"),
        (None, np.array([[1.0, 2.0]]), "needs whole numbers"),
        (None, [1, [2]], "needs whole numbers"),
        (None, [True, False], "text ids: given bool, needs"),
        (None, torch.ones(2, 2, 2, dtype=torch.int64), "needs whole numbers"),
        ("", None, "text is empty"),
        (["A bank", " "], None, "text 2 is blank"),
        (None, [], "text ids are empty: needs at least one"),
        (None, [[]], "text ids are empty: needs at least one"),
        (None, [1, -1], "text id -1 is out of range: transformer has ids 0 to"),
        (None, [10**6], "text id 1000000 is out of range"),
        ("bank " * 32, None, "has 32 tokens, special ones .* takes 31 at most; .* --window 15 .in Python, window=15."),
    ],
)
def test_what_is_refused(given: Any, ids: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        opened("gpt")._reader.read("text", given, ids)


def test_a_text_that_does_not_fit_is_refused_before_its_tokens_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two million characters took half a minute to be refused."""
    built: list[int] = []
    monkeypatch.setattr("regard.text.tokens._encoded", lambda *given: built.append(1))
    with pytest.raises(RegardError, match="text has 32 tokens"):
        opened("gpt")._reader.read("text", "bank " * 32, None)
    assert not built


def test_any_length_in_windows() -> None:
    _, (encoded,) = opened("gpt")._reader.read("text", "bank " * 32, None, windowed=True)
    assert len(encoded.tokens) == 32


def test_a_target_begins_with_the_start_token() -> None:
    model = pair()
    start = model.model.config.start
    _, (target,) = model._reader.read("target", "Une banque", None)
    _, (text,) = model._reader.read("text", "Une banque", None)
    assert target.ids == [start, *text.ids[:-1]]


def test_a_tokenizer_of_another_model_is_refused() -> None:
    small, large = opened("gpt")._reader, pair()
    wrong = type(small)(small.model, large.tokenizer, "tiny", 31)
    with pytest.raises(RegardError, match="they do not belong together"):
        wrong.read("text", TEXT, None)
    with pytest.raises(RegardError, match="has no tokenizer: give ids="):
        type(small)(small.model, None, "tiny", 31).read("text", TEXT, None)


def test_two_texts_are_read_by_the_tokenizers_template(minilm: Any) -> None:
    first, second = "A man eats at the bank.", "The bank is closed — naïve!"
    for reads in (minilm, opened("gpt")):
        tokenizer = reads.tokenizer
        single, (pair_of_texts,) = reads._reader.read_parts(first, second, None)
        expected = tokenizer(first, second)
        assert single
        assert pair_of_texts.ids == expected["input_ids"]
        assert list(pair_of_texts.segments or ()) == list(expected.get("token_type_ids", ()))
        assert pair_of_texts.text == f"{first}\n{second}"
        for turn, text in zip(pair_of_texts.turns, (first, second), strict=True):
            assert pair_of_texts.text[turn.start : turn.end] == text
            own = [pair_of_texts.tokens[n] for n in turn.tokens]
            spans = [(token.start - turn.start, token.end - turn.start) for token in own]
            assert spans == [(s, e) for s, e in tokenizer(text, return_offsets_mapping=True)["offset_mapping"] if e > s]
    assert {token.turn for token in minilm.trace(first, second=second).tokens} == {"", "text 1", "text 2"}
    trace = minilm.trace(first, second=second)
    assert [each.start for each in trace.word("bank")] == [18, 28]
    assert trace.word("closed")[0].start - trace.turns[1].start == second.index("closed")
    assert [each.text for each in minilm.trace([first, "b"], second=[second, "c"])] == [trace.text, "b\nc"]
    own = minilm.model(**minilm.tokenizer(first, second, return_tensors="pt")).last_hidden_state[0]
    torch.testing.assert_close(trace.last_hidden_state, own, atol=1e-5, rtol=0)
    read, _ = model_inputs_of_trace(minilm._reader, trace, "test")
    assert list(read.segments or ()) == minilm.tokenizer(first, second)["token_type_ids"]  # to be run again


def test_words_are_found_as_they_were_given(minilm: Any) -> None:
    words = ["New-York", "isn't", "Bob", "'s", "."]
    trace = minilm.trace(words=words)
    assert [t.id for t in trace.tokens] == minilm.tokenizer(words, is_split_into_words=True)["input_ids"]
    assert trace.text == "New-York isn't Bob 's ."
    for n, word in enumerate(words):
        (found,) = trace.word(word)
        assert {trace.tokens[k].word for k in found.tokens} == {n}
    assert [each.text for each in minilm.trace(words=[["a", "bank"], words])] == ["a bank", trace.text]


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"second": "b"}, "second: needs a text for each second text"),
        ({"text": "a", "second": ["b"]}, "second: needs one text, as the text is"),
        ({"text": ["a", "b"], "second": ["b"]}, "second: needs a list of 2, as the text is"),
        ({"text": "a", "second": " "}, "second is blank"),
        ({"text": "a", "words": ["b"]}, "words: words replace the text"),
        ({"words": "abc"}, "words: given 'abc', needs a list of words"),
        ({"words": []}, "needs a list of words"),
        ({"words": ["a", ""]}, "word 2 is empty"),
        ({"words": ["a"] * 600}, "words has 602 tokens"),
        ({"text": "a", "second": "b", "window": 20}, "second, words: leave out ids, inputs and window"),
    ],
)
def test_parts_that_are_refused(minilm: Any, given: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        minilm.trace(**given)
