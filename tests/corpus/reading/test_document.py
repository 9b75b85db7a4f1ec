"""Documents are values: they are compared by what they hold, and nothing in one can be put in another's place."""

import dataclasses

import pytest

from regard.corpus.reading.document import DEFAULT, Columns, Document, Rejected


def test_values() -> None:
    one = Document("a.txt", "a text", 0, "a.txt", None, {"date": "1851"})
    assert one == Document("a.txt", "a text", 0, "a.txt", None, {"date": "1851"})
    assert one != dataclasses.replace(one, start=200_000)
    assert Rejected("a", 3, "empty") == Rejected("a", 3, "empty") != Rejected("a", None, "empty")
    assert Columns() == DEFAULT == Columns(text="text", id=None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.text = "another"  # type: ignore[misc]
