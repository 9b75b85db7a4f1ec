"""Rows of .jsonl and .csv: each is read or refused by itself."""

import csv
import io
import json
from collections.abc import Callable

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.reading import streams, tables
from regard.corpus.reading.document import DEFAULT, Columns, Document, Rejected
from regard.corpus.reading.tables import read_csv, read_jsonl

Reader = Callable[..., "list[Document | Rejected]"]


def jsonl(content: bytes, columns: Columns = DEFAULT) -> list[Document | Rejected]:
    return list(read_jsonl("f", io.BytesIO(content), columns))


def table(content: bytes, columns: Columns = DEFAULT) -> list[Document | Rejected]:
    return list(read_csv("f", io.BytesIO(content), columns))


def document(line: int, text: str, **metadata: str) -> Document:
    return Document(f"f:{line}", text, 0, "f", line, metadata)


def test_json_lines() -> None:
    content = '\ufeff{"text": "a\\n\\u00e9", "n": 1.5, "x": null}\r\n\n  \n{"d": {"e": [true]}, "text": "😀\u2028b"}'
    assert jsonl(content.encode()) == [document(1, "a\né", n="1.5"), document(4, "😀\u2028b", d='{"e": [true]}')]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nothing", "invalid JSON: Expecting value: line 1 column 1 (char 0)"),
        (b'{"text": "a"', "invalid JSON: Expecting ',' delimiter: line 2 column 1 (char 13)"),
        (b'{"text": "a"} {}', "invalid JSON: Extra data: line 1 column 15 (char 14)"),
        (b'{"text": "a", "n": ' + b"[" * 99_999 + b"]" * 99_999 + b"}", "invalid JSON: it is nested too deep"),
        (b'["text"]', "needs a JSON object, given list"),
        (b'{"body": "a"}', "no column 'text': there are 'body'"),
        (b'{"text": null}', "column 'text' is null, needs a string"),
        (b'{"text": 7}', "column 'text' is a number, needs a string"),
        (b'{"text": ""}', "column 'text' is empty"),
        (b'{"text": "a\\u0000"}', "column 'text' is binary: character U+0000 at place 1"),
        (b'{"text": "a\\ud83d"}', "column 'text' holds a lone surrogate, U+D83D at place 1"),
        (b'{"text": "\xff"}', "invalid UTF-8: byte 0xff at place 10"),
        (b"\0\0", "invalid JSON: Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_a_bad_line_keeps_no_other_from_being_read(line: bytes, reason: str) -> None:
    content = b'{"text": "before"}\n' + line + b'\n{"text": "after"}\n'
    assert jsonl(content) == [document(1, "before"), Rejected("f", 2, reason), document(3, "after")]


def test_a_line_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LONGEST_LINE", 60)
    rows = [json.dumps({"text": "a" * count}).encode() + b"\n" for count in (5, 900_000, 6)]
    first, long, last = jsonl(b"".join(rows))
    assert (first, last) == (document(1, "aaaaa"), document(3, "aaaaaa"))
    assert isinstance(long, Rejected)
    assert (long.line, long.reason.split(":")[0]) == (2, "longer than 134,217,728 bytes")
    ends = table(b"text\na\n" + b"b" * 70 + b"\nc\n")
    assert ends[0] == document(2, "a")
    assert isinstance(ends[1], Rejected)
    assert ends[1].reason.endswith("; nothing after line 2 is read")


@pytest.mark.parametrize("read", [jsonl, table])
def test_files_without_rows(read: Reader) -> None:
    assert read(b"") == [Rejected("f", None, "empty")]
    assert isinstance(read(b"\n\n")[0], Rejected)
    assert table(b"text,date\n") == [Rejected("f", None, "it has no rows, but the names of its columns")]


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@given(
    st.lists(st.tuples(CELLS.map(lambda text: f"a{text}"), CELLS), min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_python_and_pandas_write_is_read(rows: list[tuple[str, str]], end: str) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([("text", "date"), *rows])
    found = table(written.getvalue().encode("utf-8-sig"))
    assert [(row.text, row.metadata["date"]) for row in found if isinstance(row, Document)] == rows
    frame = pandas.DataFrame(rows, columns=["text", "date"])
    packed = frame.to_json(orient="records", lines=True, force_ascii=False).encode()
    found = jsonl(packed)
    assert [(row.text, row.metadata["date"]) for row in found if isinstance(row, Document)] == rows


def test_the_line_of_a_row_is_the_one_it_begins_in() -> None:
    content = b'\xef\xbb\xbftext,date\r\n"a\r\nb, ""c""",1\r\n\r\nd,2\r\n"e\rf",'
    assert table(content) == [
        document(2, 'a\r\nb, "c"', date="1"),
        document(5, "d", date="2"),
        document(6, "e\rf", date=""),
    ]
    assert table(b"text\ra\rb") == [document(2, "a"), document(3, "b")]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"a", "1 cells where there are 2 columns"),
        (b"a,b,c", "3 cells where there are 2 columns"),
        (b",b", "column 'text' is empty"),
        (b'"  ",b', "column 'text' is blank"),
        (b"a\0,b", "column 'text' is binary: character U+0000 at place 1"),
        (b"a\xe9,b", "invalid UTF-8: byte 0xe9 at character 1 in column 'text'"),
        (b"a,\xed\xa0\x80", "invalid UTF-8: byte 0xed at character 0 in column 'date'"),
        (b'"a"b,c', "no row of comma-separated values: ',' expected after '\"'"),
    ],
)
def test_a_bad_row_keeps_no_other_from_being_read(row: bytes, reason: str) -> None:
    content = b"text,date\nbefore,1\n" + row + b"\nafter,2\n"
    assert table(content) == [document(2, "before", date="1"), Rejected("f", 3, reason), document(4, "after", date="2")]


def test_a_quote_that_is_never_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b'text,date\na,1\n"b,2\nc,3\n'
    said = "no row of comma-separated values, lines 3 to 4: unexpected end of data"
    assert table(content) == [document(2, "a", date="1"), Rejected("f", 3, said)]
    monkeypatch.setattr(tables, "LONGEST_CELL", 100)
    _, refused, *rest = table(content + b"d,4\n" * 50)
    assert isinstance(refused, Rejected)
    assert refused.reason.startswith("no row of comma-separated values, lines 3 to ")
    assert refused.reason.endswith("field larger than field limit (100)")
    through = int(refused.reason.split(" to ")[1].split(":")[0])
    assert [each.line for each in rest] == list(range(through + 1, 55))  # nothing between is left out


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"body,date\na,b\n", "no column 'text': there are 'body', 'date'"),
        (b"text;date\na;b\n", "no column 'text': there are 'text;date'"),
        (b"text,date,date\na,b,c\n", "column 'date' is there twice"),
        (b"text,\xff\na,b\n", "invalid UTF-8: byte 0xff at character 0 in column 2 of the first row"),
        (b"\0\1\2\n", "binary: character U+0000 in the names of the columns"),
    ],
)
def test_names_of_columns_that_cannot_be_used(content: bytes, reason: str) -> None:
    assert table(content) == [Rejected("f", None, reason)]


def test_ids_of_ones_own() -> None:
    columns = Columns("body", "name")
    assert table(b"name,body,x\nq,a,1\n", columns) == [Document("q", "a", 0, "f", 2, {"x": "1"})]
    assert jsonl(b'{"name": 7, "body": "a"}', columns) == [Document("7", "a", 0, "f", 1, {})]
    assert table(b"body\na\n", columns) == [Rejected("f", None, "no column 'name': there are 'body'")]
