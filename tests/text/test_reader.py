"""Texts and ids read for a model: single or several, and what does not fit it."""

from typing import Any

import numpy as np
import pandas
import pytest
import torch
from transformers import BatchEncoding

from regard.errors import RegardError
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
        ("bank " * 32, None, "text has 32 tokens, special ones included: transformer takes 31 at most; it can be read"),
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
