"""Texts and ids read for a model: single or several, and what does not fit it."""

from typing import Any

import pytest
import torch

from regard.errors import RegardError
from tests.support.own_models import no_checks_of_annotations, opened, pair

__all__ = ["no_checks_of_annotations"]  # the fixture

TEXT = "A man is fishing on a river bank."


def test_one_or_several() -> None:
    reader = opened("gpt")._reader
    single, (one,) = reader.read("text", TEXT, None)
    several, (again,) = reader.read("text", [TEXT], None)
    assert (single, several) == (True, False)
    assert one.ids == again.ids
    for ids in (one.ids, torch.tensor(one.ids)):
        single, (by_ids,) = reader.read("text", None, ids)
        assert single
        assert by_ids.ids == one.ids
    single, both = reader.read("text", None, [[1, 2], [3]])
    assert (single, [each.ids for each in both]) == (False, [[1, 2], [3]])


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("given", "ids", "says"),
    [
        (None, None, "needs either text or its ids, given none"),
        ("a", [1], "needs either text or its ids, given both"),
        ([], None, "given no text, needs at least one"),
        (3, None, "given int, needs a string or several of them"),
        (b"a", None, "given bytes, needs a string"),
        ("", None, "text is empty"),
        (["A bank", " "], None, "text 2 is blank"),
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
