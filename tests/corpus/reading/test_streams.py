"""Files as bytes, lines and text: compressed or not, whole or an error, in memory that does not grow with them."""

import bz2
import csv
import gzip
import io
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pandas
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.reading import streams
from regard.corpus.reading.document import DEFAULT, Columns, Document, Rejected
from regard.corpus.reading.streams import FAULTS, kind_of, lines, opened, read_csv, read_jsonl, reason, text_blocks
from regard.errors import RegardError

CONTENT = b"a line\n" * 100_000
frame = pa.Codec("zstd").compress
SKIPPED = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"  # a frame of Zstandard that holds no data


def read(path: Path, content: bytes) -> bytes:
    path.write_bytes(content)
    with opened(path) as stream:
        return stream.read()


def why(path: Path, content: bytes) -> str:
    with pytest.raises(FAULTS) as raised:
        read(path, content)
    return reason(raised.value)


def test_kinds() -> None:
    names = ["a.txt", "A.TXT", "a.b.jsonl.gz", "a.csv.ZST", "a.parquet", "a.txt.gz.csv"]
    kinds = [(".txt", ""), (".txt", ""), (".jsonl", ".gz"), (".csv", ".zst"), (".parquet", ""), (".csv", "")]
    assert [kind_of(Path(name)) for name in names] == kinds
    assert not any(kind_of(Path(name)) for name in ("a", "a.gz", "a.parquet.gz", ".txt", "a.txt.bz2", "txt", "-"))


def test_compressed_files(tmp_path: Path) -> None:
    assert read(tmp_path / "a.txt", CONTENT) == CONTENT
    assert read(tmp_path / "a.txt.gz", gzip.compress(CONTENT) + gzip.compress(b"more")) == CONTENT + b"more"
    assert (
        read(tmp_path / "a.txt.zst", frame(CONTENT, asbytes=True) + SKIPPED + frame(b"more", asbytes=True))
        == CONTENT + b"more"
    )
    assert read(tmp_path / "b.txt.zst", b"") == read(tmp_path / "b.txt.gz", b"") == b""


@pytest.mark.parametrize("kept", [1, 3, 12, 40, -9, -1])
def test_truncated_files(tmp_path: Path, kept: int) -> None:
    for ending, packed in (("zst", frame(os.urandom(10_000), asbytes=True)), ("gz", gzip.compress(os.urandom(10_000)))):
        assert why(tmp_path / f"a.txt.{ending}", packed[:kept]) == "cannot be read: Truncated compressed stream"


def test_what_is_not_what_its_name_says(tmp_path: Path) -> None:
    assert why(tmp_path / "a.txt.gz", bz2.compress(CONTENT)).startswith("cannot be read: ")
    assert why(tmp_path / "a.txt.zst", gzip.compress(CONTENT)).startswith("cannot be read: ")


def test_pipes_devices_and_what_is_not_there(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path / "pipe", "isn't a regular file"),
        (Path("/dev/zero"), "isn't a regular file"),
        (tmp_path, "isn't a regular file"),
    ):
        with pytest.raises(RegardError, match=said), opened(path):
            pass
    with pytest.raises(RegardError, match="No such file"), opened(tmp_path / "none"):
        pass


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_bomb_takes_no_memory(tmp_path: Path, ending: str) -> None:
    size, file = 100 << 20, tmp_path / f"a.txt.{ending}"
    with pa.CompressedOutputStream(str(file), {"gz": "gzip", "zst": "zstd"}[ending]) as packed:
        for _ in range(100):
            packed.write(bytes(1 << 20))
    tracemalloc.start()
    with opened(file) as stream:
        total = 0
        while block := stream.read(1 << 20):
            total += len(block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == size
    assert peak < 40 << 20


def test_lines_and_those_that_are_too_long() -> None:
    content = b"a\r\nbb\n" + b"c" * 10 + b"\n" + b"d" * 11 + b"\n" + b"e" * 500_000 + b"\n\nf"
    assert list(lines(io.BytesIO(content), 11)) == [
        b"a\r\n",
        b"bb\n",
        b"c" * 10 + b"\n",
        b"d" * 11 + b"\n",
        None,
        b"\n",
        b"f",
    ]
    assert list(lines(io.BytesIO(b"e" * 12), 11)) == [None]
    assert list(lines(io.BytesIO(b""))) == []


@given(st.text(max_size=40), st.integers(1, 7))
def test_text_in_blocks_is_the_text(text: str, size: int) -> None:
    class Short(io.BytesIO):
        def read(self, count: int | None = -1) -> bytes:
            return super().read(size)

    content = text.replace("\0", "")
    assert "".join(text_blocks(Short(content.encode()))) == content.removeprefix("\ufeff")
    assert "".join(text_blocks(Short(content.encode("utf-8-sig")))) == content


@pytest.mark.parametrize("before", [0, 1, streams.BLOCK - 2, streams.BLOCK - 1, streams.BLOCK, 3 * streams.BLOCK + 5])
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"\xff", "invalid UTF-8: byte 0xff at position {}"),
        (b"\xc3(", "invalid UTF-8: byte 0xc3 at position {}"),
        (b"\xe2\x82", "invalid UTF-8: byte 0xe2 at position {}"),
        (b"\xed\xa0\x80", "invalid UTF-8: byte 0xed at position {}"),
        (b"\0", "binary: byte 0x00 at position {}"),
    ],
)
def test_bad_bytes_are_named(before: int, bad: bytes, said: str) -> None:
    with pytest.raises(RegardError) as raised:
        list(text_blocks(io.BytesIO(b"a" * before + bad)))
    assert str(raised.value) == said.format(f"{before:,}")


def test_only_the_first_byte_order_mark_is_one() -> None:
    text = "a" * (streams.BLOCK - 3) + "\ufeffb\ufeff"
    assert "".join(text_blocks(io.BytesIO(("\ufeff" + text).encode()))) == text


def test_utf16_is_recognised() -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        with pytest.raises(RegardError, match="at position 0; it looks like UTF-16, expected UTF-8"):
            list(text_blocks(io.BytesIO("\ufeffa text".encode(encoding))))


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
        (b'["text"]', "got list, expected a JSON object"),
        (b'{"body": "a"}', "no column 'text': there are 'body'"),
        (b'{"text": null}', "column 'text' is null, expected a string"),
        (b'{"text": 7}', "column 'text' is a number, expected a string"),
        (b'{"text": ""}', "column 'text' is empty"),
        (b'{"text": "a\\u0000"}', "column 'text' is binary: character U+0000 at position 1"),
        (b'{"text": "a\\ud83d"}', "column 'text' holds a lone surrogate, U+D83D at position 1"),
        (b'{"text": "\xff"}', "invalid UTF-8: byte 0xff at position 10"),
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
    assert (long.line, long.reason.split(":")[0]) == (2, "longer than 60 bytes")
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
        (b"a\0,b", "column 'text' is binary: character U+0000 at position 1"),
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
    monkeypatch.setattr(streams, "LONGEST_CELL", 100)
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
