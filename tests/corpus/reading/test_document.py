"""Documents are values: they are compared by what they hold, and nothing in one can be put in another's place."""

import dataclasses
import datetime
import decimal

import pytest

from regard.corpus.reading.document import (
    DEFAULT,
    Columns,
    Document,
    Rejected,
    as_string,
    lone_surrogate_in_document,
    missing_document_column,
    repeated_document_column,
    to_document,
)

IDS = Columns("body", "name")


def test_values() -> None:
    one = Document("a.txt", "a text", 0, "a.txt", None, {"date": "1851"})
    assert one == Document("a.txt", "a text", 0, "a.txt", None, {"date": "1851"})
    assert one != dataclasses.replace(one, start=200_000)
    assert Rejected("a", 3, "empty") == Rejected("a", 3, "empty") != Rejected("a", None, "empty")
    assert Columns() == DEFAULT == Columns(text="text", id=None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.text = "another"  # type: ignore[misc]


def test_a_row() -> None:
    cells = {"body": "a text", "name": 7, "date": datetime.date(1851, 10, 18), "tags": ["é", None], "none": None}
    metadata = {"date": "1851-10-18", "tags": '["é", null]'}
    assert to_document("a.csv", 3, cells, IDS) == Document("7", "a text", 0, "a.csv", 3, metadata)
    named = to_document("a.csv", 3, cells, Columns("body"))
    assert isinstance(named, Document)
    assert (named.id, named.metadata["name"]) == ("a.csv:3", "7")


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"name": "a", "date": "x"}, "no column 'body': there are 'name', 'date'"),
        ({}, "no column 'body', nor any"),
        ({"body": "a"}, "no column 'name': there are 'body'"),
        ({"body": None, "name": "a"}, "column 'body' is null, expected a string"),
        ({"body": 3, "name": "a"}, "column 'body' is a number, expected a string"),
        ({"body": True, "name": "a"}, "column 'body' is true or false, expected a string"),
        ({"body": ["a"], "name": "a"}, "column 'body' is a list, expected a string"),
        ({"body": "", "name": "a"}, "column 'body' is empty"),
        ({"body": " \n\u3000", "name": "a"}, "column 'body' is blank"),
        ({"body": "ab\0", "name": "a"}, "column 'body' is binary: character U+0000 at position 2"),
        ({"body": "é\ud83d", "name": "a"}, "column 'body' holds a lone surrogate, U+D83D at position 1"),
        ({"body": "a", "name": "\udc00"}, "column 'name' holds a lone surrogate, U+DC00 at position 0"),
        ({"body": "a", "name": "a", "x": "\udc00"}, "column 'x' holds a lone surrogate, U+DC00 at position 0"),
        ({"body": "a", "name": "a", "\udc00": "x"}, r"column '\udc00' holds a lone surrogate, U+DC00 at position 0"),
        ({"body": "a", "name": " "}, "column 'name' is blank, expected a string or a whole number"),
        ({"body": "a", "name": None}, "column 'name' is null, expected a string or a whole number"),
        ({"body": "a", "name": True}, "column 'name' is true or false, expected a string or a whole number"),
    ],
)
def test_what_is_no_document(cells: dict[str, object], reason: str) -> None:
    assert to_document("a.jsonl", 9, cells, IDS) == Rejected("a.jsonl", 9, reason)


def test_values_as_strings() -> None:
    values = [
        "a",
        True,
        5,
        0.1,
        {"a": [1, None]},
        b"\xff",
        datetime.datetime(2001, 2, 3, 4, 5),
        decimal.Decimal("1.50"),
    ]
    assert list(map(as_string, values)) == [
        "a",
        "true",
        "5",
        "0.1",
        '{"a": [1, null]}',
        "/w==",
        "2001-02-03T04:05:00",
        "1.50",
    ]
    assert as_string({"at": datetime.date(2001, 2, 3), "raw": b"\xff"}) == '{"at": "2001-02-03", "raw": "/w=="}'


def test_names_of_columns() -> None:
    assert missing_document_column(["a"], ["a", "b"]) == ""
    assert missing_document_column(["a"], map(str, range(23))).endswith("'19' and 3 more")
    assert repeated_document_column(["a", "b"]) == ""
    assert repeated_document_column(["a", "b", "a"]) == "column 'a' is there twice"
    assert lone_surrogate_in_document("😀") == ""
