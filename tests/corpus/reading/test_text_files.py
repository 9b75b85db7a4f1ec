"""A text of any length: whole, in parts, or refused whole."""

import io
import sys
from pathlib import Path

import pytest

from regard.corpus.reading.document import Document, Rejected
from regard.corpus.reading.streams import BLOCK, opened
from regard.corpus.reading.text_files import copied_input, read_text
from regard.errors import RegardError


def read(path: Path, content: bytes, most: int = 200_000) -> list[Document | Rejected]:
    path.write_bytes(content)
    return list(read_text("a.txt", lambda: opened(path), most))


def test_characters_stand_as_they_are(tmp_path: Path) -> None:
    text = "one\r\ntwo\rthree\u2028 \x85fo\u0301ur\n\ufeff"
    whole = Document("a.txt", text, 0, "a.txt", None, {})
    assert read(tmp_path / "a.txt", text.encode()) == [whole]
    assert read(tmp_path / "a.txt", text.encode("utf-8-sig")) == [whole]  # its byte order mark is no character of it


def test_parts_count_the_characters_of_the_whole(tmp_path: Path) -> None:
    text = "".join(f"Line {n} é.\r\n" + "\r\n" * (n % 7 == 0) for n in range(4000))
    parts = [each for each in read(tmp_path / "a.txt", text.encode(), 1000) if isinstance(each, Document)]
    assert len(parts) > 40
    assert "".join(part.text for part in parts) == text
    assert all(text[part.start :].startswith(part.text) for part in parts)
    assert all(part.text.endswith("\r\n\r\n") for part in parts[:-1])
    assert {(part.id, part.source, part.line) for part in parts} == {("a.txt", "a.txt", None)}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b" \n\t\r\n" * BLOCK, "blank"),
        (b"a" * 3 * BLOCK + b"\0", f"binary: byte 0x00 at place {3 * BLOCK:,}"),
        (b"a" * 3 * BLOCK + b"\xe9t\xe9", f"invalid UTF-8: byte 0xe9 at place {3 * BLOCK:,}"),
    ],
)
def test_no_part_of_a_bad_text_is_given(tmp_path: Path, content: bytes, reason: str) -> None:
    assert read(tmp_path / "a.txt", content, 1000) == [Rejected("a.txt", None, reason)]


@pytest.mark.parametrize("size", [5, 9 << 20])  # in memory, and beyond
def test_standard_input(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    content = b"ab\r\n" * (size // 4) + b"end"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with copied_input() as again:
        parts = [each for each in read_text("-", again, 200_000) if isinstance(each, Document)]
    assert "".join(part.text for part in parts).encode() == content
    assert {part.id for part in parts} == {"-"}
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(RegardError, match="there is no standard input"), copied_input():
        pass
